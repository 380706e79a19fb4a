// SPDX-License-Identifier: Apache-2.0
#include "core/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/settings.h"
#include "core/text.h"

enum { PART_BYTES = 256, PLACES_MAX = 10000 };

static const char *variable(const char *name)
{
    const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe): as the header says

    return value && *value ? value : NULL;
}

// The first of `names` that holds a number.
static int first_number(const char *const names[], int otherwise)
{
    for (; *names; names++) {
        const char *text = variable(*names);
        uint64_t value;

        if (text && as_text_number(text, &value) == 0 && value < INT32_MAX)
            return (int)value;
    }
    return otherwise;
}

int as_path_rank(void)
{
    return first_number((const char *const[]){"RANK", "SLURM_PROCID", NULL}, 0);
}

int as_path_world(void)
{
    return first_number((const char *const[]){"WORLD_SIZE", "SLURM_NTASKS", NULL}, 1);
}

int as_path_local_world(void)
{
    return first_number(
        (const char *const[]){"LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", NULL}, 1);
}

// When a process started, in ticks since boot: unlike a time of day it is the same
// whoever asks. 0: not known.
static unsigned long long process_start(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t bytes = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (bytes <= 0)
        return 0;
    text[bytes] = '\0';

    // The program's name, field 2, may hold anything; what follows its last ')' not.
    const char *field = strrchr(text, ')');
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

static void start_time(char *text, size_t text_bytes)
{
    const time_t seconds = (time_t)(as_clock_started_unix_ns() / 1000000000);
    struct tm parts;

    if (!localtime_r(&seconds, &parts) ||
        strftime(text, text_bytes, "%Y%m%d-%H%M%S", &parts) == 0)
        snprintf(text, text_bytes, "%lld", (long long)seconds);
}

static void raw_run_id(const struct as_settings *settings, char *id, size_t id_bytes)
{
    const char *job = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID");
    const char *elastic = variable("TORCHELASTIC_RUN_ID");

    if (settings->run_id) {
        snprintf(id, id_bytes, "%s", settings->run_id);
    } else if (job) {
        snprintf(id, id_bytes, "%s.%s", job, step ? step : "0");
    } else if (elastic && strcmp(elastic, "none") != 0) {
        snprintf(id, id_bytes, "%s", elastic);
    } else if (variable("RANK")) {
        snprintf(id, id_bytes, "%d-%llu", (int)getppid(), process_start(getppid()));
    } else {
        char started[64];

        start_time(started, sizeof(started));
        snprintf(id, id_bytes, "%s-%d", started, (int)getpid());
    }
}

void as_path_run_id(const struct as_settings *settings, char *id, size_t id_bytes)
{
    raw_run_id(settings, id, id_bytes);
    for (; *id; id++) {
        if (*id == '/' || (unsigned char)*id <= ' ')
            *id = '_';
    }
}

// The first `text_bytes` of the arguments, each with its '\0', and one more at the end.
static size_t read_arguments(char *text, size_t text_bytes)
{
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read(fd, text, text_bytes - 1);

    if (fd >= 0)
        close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0 ? (size_t)bytes : 0;
}

void as_path_program(char *name, size_t name_bytes)
{
    char text[4096];
    const size_t bytes = read_arguments(text, sizeof(text));
    const char *shown = program_invocation_short_name;
    const bool interpreter = strncmp(shown, "python", 6) == 0;
    size_t at = strlen(text) + 1;

    // Options come first, and the script is what follows them. -c and -m end them.
    while (interpreter && at < bytes && text[at] == '-' && text[at + 1] != 'c' &&
           text[at + 1] != 'm')
        at += strlen(text + at) + 1;
    if (interpreter && at < bytes && text[at] != '-') {
        const char *slash = strrchr(text + at, '/');

        shown = slash ? slash + 1 : text + at;
    }
    snprintf(name, name_bytes, "%s", shown);
}

// Reads "{NAME}" behind %q and moves *template to its '}'.
static int quoted_variable(const char **template, char *part, size_t part_bytes)
{
    const char *start = *template + 1, *end = strchr(start, '}');
    char name[PART_BYTES];

    if (*start != '{' || !end || (size_t)(end - start) > sizeof(name))
        return -EINVAL;
    snprintf(name, sizeof(name), "%.*s", (int)(end - start - 1), start + 1);
    const char *value = variable(name);
    snprintf(part, part_bytes, "%s", value ? value : "unset");
    *template = end;
    return 0;
}

// What stands for one letter; *template points at it and ends on its last character.
static int expand(const struct as_settings *settings, const char **template, char *part,
                  size_t part_bytes)
{
    switch (**template) {
    case 'p':
        snprintf(part, part_bytes, "%d", (int)getpid());
        return 0;
    case 'h':
        if (gethostname(part, part_bytes))
            snprintf(part, part_bytes, "unknown");
        part[part_bytes - 1] = '\0';
        return 0;
    case 'r':
        snprintf(part, part_bytes, "%d", as_path_rank());
        return 0;
    case 'i':
        as_path_run_id(settings, part, part_bytes);
        return 0;
    case 'e':
        snprintf(part, part_bytes, "%s", program_invocation_short_name);
        return 0;
    case 't':
        start_time(part, part_bytes);
        return 0;
    case 'q':
        return quoted_variable(template, part, part_bytes);
    case '%':
        snprintf(part, part_bytes, "%%");
        return 0;
    default:
        return -EINVAL;
    }
}

int as_settings_path(const struct as_settings *settings, const char *template, char *path,
                     size_t path_bytes)
{
    size_t used = 0;

    for (; *template; template ++) {
        char part[PART_BYTES] = {*template, '\0'};

        if (*template == '%') {
            template ++;
            const int err = expand(settings, &template, part, sizeof(part));
            if (err)
                return err;
        }
        const size_t length = strlen(part);
        if (used + length >= path_bytes)
            return -ENAMETOOLONG;
        memcpy(path + used, part, length);
        used += length;
    }
    path[used] = '\0';
    return 0;
}

int as_path_make_folders(const char *path)
{
    char folder[4096];
    const size_t length = strlen(path);
    if (length >= sizeof(folder))
        return -ENAMETOOLONG;
    memcpy(folder, path, length + 1);

    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return 0;
}

// -EEXIST: the name is taken. Network file systems know no rename that keeps what is
// there, and some others no links.
static int place_at(const char *made, const char *path)
{
    if (!renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE))
        return 0;
    if (errno == EEXIST)
        return -EEXIST;
    if (!link(made, path))
        return unlink(made) ? -errno : 0;
    if (errno == EEXIST)
        return -EEXIST;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    close(fd);
    return rename(made, path) ? -errno : 0;
}

int as_path_place(const char *made, char *path, size_t path_bytes)
{
    char stem[4096];
    const size_t length = strlen(path);
    if (length >= sizeof(stem))
        return -ENAMETOOLONG;
    memcpy(stem, path, length + 1);

    const char *name = strrchr(stem, '/');
    char *dot = strrchr(name ? name + 1 : stem, '.');
    char ending[PART_BYTES] = "";
    if (dot && dot != stem) {
        snprintf(ending, sizeof(ending), "%s", dot);
        *dot = '\0';
    }

    for (int n = 2; n < PLACES_MAX; n++) {
        const int err = place_at(made, path);
        if (err != -EEXIST)
            return err;
        const int used = snprintf(path, path_bytes, "%s.%d%s", stem, n, ending);
        if (used < 0 || (size_t)used >= path_bytes)
            return -ENAMETOOLONG;
    }
    return -EEXIST;
}

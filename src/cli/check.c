// SPDX-License-Identifier: Apache-2.0
#include "cli/check.h"

#include "cli/error.h"
#include "cli/launch.h"
#include "core/gpu.h"
#include "core/settings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 1024, LIST_BYTES = 1024, NAMES_MAX = 256 };

static bool is_file(const char *path)
{
    struct stat status;
    return !stat(path, &status) && !S_ISDIR(status.st_mode);
}

// As execvp() would look for it.
static int find_on_path(const char *name, char **path)
{
    const char *const search = getenv("PATH");
    const char *rest = search ? search : "/usr/local/bin:/usr/bin:/bin";
    bool found = false;
    while (rest) {
        const size_t length = strcspn(rest, ":");
        char *candidate = NULL;
        if (asprintf(&candidate, "%.*s/%s", length ? (int)length : 1, length ? rest : ".",
                     name) < 0)
            return as_error(AS_EXIT_CANNOT, "out of memory");
        found = found || is_file(candidate);
        if (is_file(candidate) && !access(candidate, X_OK)) {
            *path = candidate;
            return 0;
        }
        free(candidate);
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    if (found) {
        return as_error(AS_EXIT_NOT_EXECUTABLE,
                        "%s is not executable: chmod +x it, or start "
                        "it with its interpreter",
                        name);
    }
    return as_error(AS_EXIT_NOT_FOUND, "no program %s on PATH", name);
}

static int find_by_name(const char *name, char **path)
{
    if (!is_file(name))
        return as_error(AS_EXIT_NOT_FOUND, "no program %s: %s", name,
                        access(name, F_OK) ? strerror(errno) : "it is a folder");
    if (access(name, X_OK)) {
        return as_error(AS_EXIT_NOT_EXECUTABLE,
                        "%s is not executable: chmod +x it, or start "
                        "it with its interpreter",
                        name);
    }
    *path = strdup(name);
    return *path ? 0 : as_error(AS_EXIT_CANNOT, "out of memory");
}

bool as_check_is_python(const char *program)
{
    const char *const slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    if (strncmp(name, "python", 6) != 0)
        return false;
    return name[6 + strspn(name + 6, "0123456789.")] == '\0';
}

const char *as_check_script(char *const program[])
{
    for (char *const *arg = program + 1; *arg; arg++) {
        if ((*arg)[0] != '-')
            return *arg;
        if (!strcmp(*arg, "--"))
            return arg[1];
        if (!strcmp(*arg, "-") || (*arg)[1] == '-')
            return NULL; // standard input, --help, --version
        if (strpbrk(*arg, "cm") && !strpbrk(*arg, "WX"))
            return NULL;
        const char last = (*arg)[strlen(*arg) - 1];
        if (last == 'W' || last == 'X') { // their value is the next argument
            if (!arg[1])
                return NULL;
            arg++;
        }
    }
    return NULL;
}

static int is_script(const struct dirent *entry)
{
    const char *const dot = strrchr(entry->d_name, '.');
    return dot && !strcmp(dot, ".py");
}

// The script with the most similar name in the same folder.
static void print_nearest_script(const char *script, char *text, size_t text_bytes)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", script);
    const char *const slash = strrchr(script, '/');
    struct dirent **entries = NULL;
    const int count = scandir(dirname(folder), &entries, is_script, alphasort);
    const char *names[NAMES_MAX + 1] = {0};
    for (int n = 0; n < count && n < NAMES_MAX; n++)
        names[n] = entries[n]->d_name;

    const char *const nearest = as_settings_nearest(slash ? slash + 1 : script, names);
    if (nearest) {
        (void)snprintf(text, text_bytes, ". Did you mean %.*s%s?",
                       slash ? (int)(slash + 1 - script) : 0, script, nearest);
    }
    for (int n = 0; n < count; n++)
        free(entries[n]);
    free(entries);
}

static int check_script(char *const program[])
{
    const char *const script = as_check_script(program);
    if (!script || !access(script, R_OK))
        return 0;
    char hint[PATH_MAX + 32] = "";
    if (errno == ENOENT)
        print_nearest_script(script, hint, sizeof(hint));
    return as_error(AS_EXIT_NOT_FOUND, "no script %s: %s%s", script,
                    access(script, F_OK) ? strerror(ENOENT) : strerror(EACCES), hint);
}

int as_check_program(const struct as_options *options, char **path)
{
    const char *const name = options->program[0];
    if (!name) {
        return as_error(AS_EXIT_USAGE, "no program given: actswap %s -- python train.py",
                        options->verb);
    }
    const int err =
        strchr(name, '/') ? find_by_name(name, path) : find_on_path(name, path);
    if (err)
        return err;
    return as_check_is_python(name) ? check_script(options->program) : 0;
}

static int check_gpu(const char *name)
{
    if (strchr(name, ',')) {
        return as_error(AS_EXIT_USAGE, "--gpu %s: one GPU at a time; run once for each",
                        name);
    }
    const char *nearest = NULL;
    if (as_gpu_find(name, &nearest))
        return 0;

    char list[LIST_BYTES];
    size_t used = 0;
    for (const struct as_gpu *gpu = as_gpu_table; gpu->name && used < sizeof(list);
         gpu++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 used ? ", " : "", gpu->name);
    }
    return as_error(AS_EXIT_USAGE, "--gpu %s is not a GPU known here. %s%s%s(%s)", name,
                    nearest ? "Did you mean " : "", nearest ? nearest : "",
                    nearest ? "? " : "", list);
}

static int check_word(const char *option, const char *value, const char *const words[])
{
    char list[LIST_BYTES] = "";
    size_t used = 0;
    for (size_t n = 0; words[n] && used < sizeof(list); n++) {
        if (!value || !strcmp(words[n], value))
            return 0;
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", n ? ", " : "",
                                 words[n]);
    }
    const char *const nearest = as_settings_nearest(value, words);
    return as_error(AS_EXIT_USAGE, "%s %s is not known. %s%s%s(%s)", option, value,
                    nearest ? "Did you mean " : "", nearest ? nearest : "",
                    nearest ? "? " : "", list);
}

int as_check_simulation(const struct as_options *options)
{
    static const char *const computes[] = {"auto", "values", "shapes", NULL};
    static const char *const checks[] = {"off", "races", "first-race", NULL};
    static const char *const orders[] = {"early", "late", "seed:1", NULL};
    uint64_t seed;

    int err = options->gpu ? check_gpu(options->gpu) : 0;
    if (!err)
        err = check_word("--compute", options->compute, computes);
    if (!err && !(options->order && as_settings_seed(options->order, &seed)))
        err = check_word("--order", options->order, orders);
    if (!err)
        err = check_word("--check", options->check, checks);
    return err;
}

int as_check_settings(const struct as_options *options)
{
    const struct {
        const char *option, *value, *variable;
    } given[] = {{"-p", options->policy, "ACTSWAP_POLICY"},
                 {"-b", options->budget, "ACTSWAP_BUDGET"},
                 {"-d", options->disk, "ACTSWAP_DISK"},
                 {"--steps", options->steps, "ACTSWAP_STEPS"}};
    const size_t count = sizeof(given) / sizeof(given[0]);
    struct as_settings settings;
    char message[MESSAGE_BYTES];
    // compare's -p has several policies, of which it has set one: that is the first here.
    for (size_t n = strcmp(options->verb, "compare") == 0; n < count; n++) {
        const int err = as_launch_set(given[n].variable, given[n].value);
        if (err)
            return err;
    }
    if (!as_settings_read(&settings, environ, message, sizeof(message)))
        return 0;
    for (size_t n = 0; n < count; n++) {
        const size_t length = strlen(given[n].variable);
        if (given[n].value && !strncmp(message, given[n].variable, length) &&
            message[length] == '=')
            return as_error(AS_EXIT_USAGE, "%s %s", given[n].option,
                            message + length + 1);
    }
    return as_error(AS_EXIT_USAGE, "%s", message);
}

int as_check_not_simulated(void)
{
    static const char prefix[] = "ACTSWAP_SIM_";
    for (char *const *entry = environ; *entry; entry++) {
        if (!strncmp(*entry, prefix, strlen(prefix))) {
            return as_error(
                AS_EXIT_USAGE,
                "%.*s is set by `actswap rehearse` only: unset it, or rehearse",
                (int)strcspn(*entry, "="), *entry);
        }
    }
    return 0;
}

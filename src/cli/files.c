// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include "cli/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PRELOAD_BYTES = 64 * 1024 };

#define REINSTALL "install actswap again (scripts/setup)"

int as_files_folder(char folder[static PATH_MAX])
{
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0)
        return as_error(AS_EXIT_CANNOT, "cannot read /proc/self/exe: %s",
                        strerror(errno));
    self[length] = '\0';
    const int used =
        snprintf(folder, PATH_MAX, "%s/%s", dirname(self), AS_PRIVATE_FROM_BIN);
    if (used >= PATH_MAX)
        return as_error(AS_EXIT_CANNOT, "the folder of this command has too long a name");

    char real[PATH_MAX];
    if (!realpath(folder, real))
        return as_error(AS_EXIT_CANNOT, "%s: %s; " REINSTALL, folder, strerror(errno));
    (void)snprintf(folder, PATH_MAX, "%s", real);
    return 0;
}

static int check_file(const char *path, uint64_t bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return as_error(AS_EXIT_CANNOT, "%s: %s; " REINSTALL, path, strerror(errno));
    struct stat status;
    const int err = fstat(fd, &status);
    (void)close(fd);
    if (err || !S_ISREG(status.st_mode) || (uint64_t)status.st_size != bytes) {
        return as_error(AS_EXIT_CANNOT,
                        "%s is not the file that was installed; " REINSTALL, path);
    }
    return 0;
}

static bool is_simulation(const char *name)
{
    return !strncmp(name, "sim", 3) || !strncmp(name, "standin/", 8);
}

static bool is_preloaded(const char *name, enum as_stack stack)
{
    if (!strcmp(name, "libactswap.so"))
        return true;
    if (stack == AS_STACK_REAL || !strncmp(name, "simtorch-", 9))
        return false;
    if (!strcmp(name, "simthreads.so"))
        return stack == AS_STACK_CHECKED;
    const size_t length = strlen(name);
    return is_simulation(name) && length > 3 && !strcmp(name + length - 3, ".so");
}

// Appends with the list's separator; the caller has made sure that the path has none.
static int append(char *list, const char *path)
{
    const size_t used = strlen(list);
    if (used + strlen(path) + 2 > PRELOAD_BYTES)
        return as_error(AS_EXIT_CANNOT, "LD_PRELOAD becomes too long");
    (void)snprintf(list + used, PRELOAD_BYTES - used, "%s%s", used ? ":" : "", path);
    return 0;
}

// One line of the manifest: "<bytes> <name>".
static int add_line(char *line, const char *folder, enum as_stack stack, char *list)
{
    char *name;
    errno = 0;
    const uint64_t bytes = strtoull(line, &name, 10);
    if (errno || *name != ' ')
        return as_error(AS_EXIT_CANNOT, "%s/manifest is damaged; " REINSTALL, folder);
    name++;
    name[strcspn(name, "\n")] = '\0';

    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return as_error(AS_EXIT_CANNOT, "%s/%s: the name is too long", folder, name);
    const int err = check_file(path, bytes);
    if (err || !is_preloaded(name, stack))
        return err;
    return append(list, path);
}

static int read_manifest(const char *folder, enum as_stack stack, char *list)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/manifest", folder) >= (int)sizeof(path))
        return as_error(AS_EXIT_CANNOT, "%s: the name is too long", folder);
    FILE *const file = fopen(path, "re");
    if (!file)
        return as_error(AS_EXIT_CANNOT, "%s: %s; " REINSTALL, path, strerror(errno));

    char line[PATH_MAX + 32];
    bool complete = false;
    int err = 0;
    while (!err && !complete && fgets(line, sizeof(line), file)) {
        complete = !strcmp(line, "end\n");
        if (!complete)
            err = add_line(line, folder, stack, list);
    }
    (void)fclose(file);
    if (!err && !complete)
        return as_error(AS_EXIT_CANNOT, "%s is cut off; " REINSTALL, path);
    return err;
}

// A build can have been made without a part.
static int check_complete(const char *folder, enum as_stack stack, const char *list)
{
    static const char *const needed[] = {"libactswap.so", "simrt13.so", "simcu.so",
                                         "simthreads.so"};
    static const size_t counts[] = {
        [AS_STACK_REAL] = 1, [AS_STACK_SIMULATED] = 3, [AS_STACK_CHECKED] = 4};
    const size_t count = counts[stack];
    for (size_t n = 0; n < count; n++) {
        if (!strstr(list, needed[n])) {
            return as_error(AS_EXIT_CANNOT, "%s/%s was never installed; " REINSTALL,
                            folder, needed[n]);
        }
    }
    return 0;
}

static bool is_ours(const char *entry)
{
    const char *const slash = strrchr(entry, '/');
    return !strcmp(slash ? slash + 1 : entry, "libactswap.so");
}

// LD_PRELOAD is a list, separated by colons or spaces.
static int append_users(char *list)
{
    const char *const users = getenv("LD_PRELOAD");
    if (!users)
        return 0;
    char *const copy = strdup(users);
    if (!copy)
        return as_error(AS_EXIT_CANNOT, "out of memory");
    int err = 0;
    char *rest = copy;
    for (char *entry; !err && (entry = strsep(&rest, ": "));) {
        if (*entry && !is_ours(entry)) // a second copy of us would count twice
            err = append(list, entry);
    }
    free(copy);
    return err;
}

int as_files_preload(enum as_stack stack)
{
    char folder[PATH_MAX];
    int err = as_files_folder(folder);
    if (err)
        return err;
    if (strpbrk(folder, ": ")) {
        return as_error(AS_EXIT_CANNOT,
                        "%s: the loader takes no colon or space in LD_PRELOAD; "
                        "install actswap in a folder without them",
                        folder);
    }
    char *const list = calloc(1, PRELOAD_BYTES);
    if (!list)
        return as_error(AS_EXIT_CANNOT, "out of memory");

    // The list is in the order of the manifest: ours first, see scripts/write-manifest.
    err = read_manifest(folder, stack, list);
    if (!err)
        err = check_complete(folder, stack, list);
    if (!err)
        err = append_users(list);
    if (!err && setenv("LD_PRELOAD", list, 1))
        err = as_error(AS_EXIT_CANNOT, "cannot set LD_PRELOAD: %s", strerror(errno));
    free(list);
    return err;
}

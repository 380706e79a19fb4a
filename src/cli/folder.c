// SPDX-License-Identifier: Apache-2.0
#include "cli/folder.h"

#include "cli/error.h"
#include "core/path.h"
#include "core/settings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_TRIED = 1000 };

static int cannot_write(const char *path)
{
    return as_error(AS_EXIT_CANNOT,
                    "cannot make the report folder %s: %s; choose one with -o", path,
                    strerror(errno));
}

static int make_wanted(struct as_folder *folder, const char *wanted, bool force)
{
    const int length = snprintf(folder->shown, sizeof(folder->shown), "%s", wanted);
    if (length >= (int)sizeof(folder->shown)) {
        errno = ENAMETOOLONG;
        return cannot_write("given with -o");
    }
    if (!mkdir(wanted, 0777))
        return 0;
    if (errno != EEXIST)
        return cannot_write(wanted);

    struct stat status;
    if (stat(wanted, &status) || !S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
        return cannot_write(wanted);
    }
    if (!force) {
        return as_error(AS_EXIT_USAGE,
                        "the folder %s exists; name a new one with -o, or add "
                        "-f to write beside what is there",
                        wanted);
    }
    return access(wanted, W_OK | X_OK) ? cannot_write(wanted) : 0;
}

static int make_new(struct as_folder *folder)
{
    const struct as_settings settings = {.run_id = getenv("ACTSWAP_RUN_ID")};
    char id[NAME_MAX / 2];
    as_path_run_id(&settings, id, sizeof(id));
    for (int n = 1; n <= NAMES_TRIED; n++) {
        const int used = snprintf(folder->shown, sizeof(folder->shown), "actswap-%s", id);
        if (n > 1 && used > 0 && used < (int)sizeof(folder->shown) - 8)
            (void)sprintf(folder->shown + used, ".%d", n);
        if (!mkdir(folder->shown, 0777))
            return 0;
        if (errno != EEXIST)
            break;
    }
    return cannot_write(folder->shown);
}

int as_folder_make(struct as_folder *folder, const char *wanted, bool force)
{
    const int err = wanted ? make_wanted(folder, wanted, force) : make_new(folder);
    if (err)
        return err;
    if (!realpath(folder->shown, folder->path))
        return cannot_write(folder->shown);
    return 0;
}

void as_folder_discard(const struct as_folder *folder)
{
    (void)rmdir(folder->path); // fails, as it should, when there is something in it
}

int as_folder_report_to(const struct as_folder *folder, const char *subfolder)
{
    // In the template % has a meaning, in the folder's name it has none.
    char template[2 * PATH_MAX];
    size_t used = 0;
    for (const char *c = folder->path; *c; c++) {
        if (*c == '%')
            template[used++] = '%';
        template[used++] = *c;
    }
    const int more = snprintf(template + used, sizeof(template) - used,
                              "%s%s/rank%%r.json", *subfolder ? "/" : "", subfolder);
    if (used + (size_t)more >= sizeof(template) || setenv("ACTSWAP_REPORT", template, 1))
        return as_error(AS_EXIT_CANNOT, "cannot set ACTSWAP_REPORT");
    return 0;
}

int as_folder_join(char path[static PATH_MAX], const char *folder, const char *name,
                   const char *suffix)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s%s", folder, name, suffix);
    if (length >= PATH_MAX)
        return as_error(AS_EXIT_CANNOT, "%s/%s: the name is too long", folder, name);
    return 0;
}

static int is_report(const struct dirent *entry)
{
    const char *const dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot && !strcmp(dot, ".json");
}

int as_folder_count_reports(const char *path, char first[NAME_MAX + 1])
{
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, is_report, versionsort);
    if (count > 0)
        (void)snprintf(first, NAME_MAX + 1, "%s", entries[0]->d_name);
    for (int n = 0; n < count; n++)
        free(entries[n]);
    free(entries);
    return count > 0 ? count : 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "pager/host.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"

enum { LINE_BYTES = 512, DEFAULT_PERCENT = 50, EXPLICIT_PERCENT = 90 };

static FILE *open_below(const char *root, const char *path)
{
    char whole[PATH_MAX];
    int written = snprintf(whole, sizeof(whole), "%s%s", root, path);
    return written < (int)sizeof(whole) ? fopen(whole, "re") : NULL;
}

// The number after `label` at the start of a line; UINT64_MAX: no such line, or "max".
static uint64_t number_after(const char *root, const char *path, const char *label)
{
    FILE *file = open_below(root, path);
    if (!file)
        return UINT64_MAX;
    char line[LINE_BYTES];
    uint64_t number = UINT64_MAX;
    while (number == UINT64_MAX && fgets(line, sizeof(line), file)) {
        char *start = line + strlen(label), *end = start;
        if (strncmp(line, label, strlen(label)) != 0)
            continue;
        number = strtoull(start, &end, 10);
        if (end == start)
            number = UINT64_MAX;
    }
    fclose(file);
    return number;
}

// The process's own group: of the second version ("0::/path"), or of the first one's
// memory controller ("7:memory:/path").
static bool group_path(const char *root, const char *controller, char path[LINE_BYTES])
{
    FILE *file = open_below(root, "/proc/self/cgroup");
    if (!file)
        return false;
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, ':');
        found = rest && strncmp(rest, controller, strlen(controller)) == 0;
        if (found)
            memmove(path, rest + strlen(controller),
                    strlen(rest + strlen(controller)) + 1);
    }
    fclose(file);
    return found;
}

struct group_files {
    const char *controller, *folder, *limit, *used;
};

// What is left below the limit of one group; UINT64_MAX: it has none.
static uint64_t left_in(const char *root, const struct group_files *files,
                        const char *path)
{
    char limit_path[PATH_MAX], used_path[PATH_MAX];
    snprintf(limit_path, sizeof(limit_path), "%s%s/%s", files->folder, path,
             files->limit);
    snprintf(used_path, sizeof(used_path), "%s%s/%s", files->folder, path, files->used);
    uint64_t limit = number_after(root, limit_path, "");
    uint64_t used = number_after(root, used_path, "");
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return limit;
    return limit > used ? limit - used : 0;
}

// A group is bound by the limits of all above it, and inside a container its path is
// often not to be seen while the root of the mount is its own.
static uint64_t left_in_groups(const char *root, const struct group_files *files)
{
    char path[LINE_BYTES];
    if (!group_path(root, files->controller, path))
        return UINT64_MAX;
    uint64_t left = UINT64_MAX;
    for (;;) {
        uint64_t here = left_in(root, files, path);
        left = here < left ? here : left;
        char *slash = strrchr(path, '/');
        if (!slash)
            return left;
        *slash = '\0';
    }
}

uint64_t as_host_available(const char *root)
{
    static const struct group_files versions[] = {
        {"::", "/sys/fs/cgroup", "memory.max", "memory.current"},
        {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
         "memory.usage_in_bytes"},
    };
    uint64_t kilobytes = number_after(root, "/proc/meminfo", "MemAvailable:");
    uint64_t available = kilobytes == UINT64_MAX ? UINT64_MAX : kilobytes * 1024;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        uint64_t left = left_in_groups(root, &versions[i]);
        available = left < available ? left : available;
    }
    return available == UINT64_MAX ? 0 : available;
}

uint64_t as_host_cap(const struct as_settings *settings, uint64_t available,
                     unsigned ranks)
{
    uint64_t share = available / (ranks ? ranks : 1);
    unsigned percent = settings->host_memory_percent;
    if (!settings->host_memory_bytes)
        return share / 100 * (percent ? percent : DEFAULT_PERCENT);
    uint64_t most = share / 100 * EXPLICIT_PERCENT;
    bool unknown = available == 0;
    return unknown || settings->host_memory_bytes < most ? settings->host_memory_bytes
                                                         : most;
}

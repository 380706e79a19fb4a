// SPDX-License-Identifier: Apache-2.0
#include "pager/host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "core/settings.h"

static char root[] = "/tmp/actswap-host-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *slash = whole + sizeof(root); *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
}

static void start(void)
{
    cr_assert(mkdtemp(root));
    put("/proc/meminfo", "MemTotal: 4000 kB\nMemAvailable:    1000 kB\nX: 1 kB\n");
}

static void finish(void)
{
    char command[PATH_MAX];
    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_expect_eq(system(command), 0); // NOLINT(cert-env33-c)
}

TestSuite(host, .init = start, .fini = finish);

Test(host, without_a_group_the_machine_decides)
{
    cr_expect_eq(as_host_available(root), 1000 * 1024);
    cr_expect_eq(as_host_available("/nowhere"), 0);
}

Test(host, the_group_of_the_second_version_binds)
{
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "500000\n");
    put("/sys/fs/cgroup/a/memory.current", "200000\n");

    cr_expect_eq(as_host_available(root), 300000);
}

Test(host, in_a_container_the_mounts_root_binds)
{
    put("/proc/self/cgroup", "0::/docker/1234\n");
    put("/sys/fs/cgroup/memory.max", "400000\n");
    put("/sys/fs/cgroup/memory.current", "400001\n");

    cr_expect_eq(as_host_available(root), 0);
}

Test(host, the_group_of_the_first_version_binds)
{
    put("/proc/self/cgroup", "9:cpu:/x\n7:memory:/a\n0::/\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "700000\n");
    put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "0\n");

    cr_expect_eq(as_host_available(root), 700000);
}

Test(host, the_cap_is_a_share_of_this_ranks_part)
{
    struct as_settings settings = {0};
    cr_expect_eq(as_host_cap(&settings, 80000, 2), 20000, "half of it by default");
    settings.host_memory_percent = 75;
    cr_expect_eq(as_host_cap(&settings, 80000, 2), 30000);
    settings.host_memory_bytes = 12345;
    cr_expect_eq(as_host_cap(&settings, 80000, 2), 12345);
    cr_expect_eq(as_host_cap(&settings, 10000, 2), 4500);
    cr_expect_eq(as_host_cap(&settings, 0, 1), 12345, "unknown: as the user says");
}

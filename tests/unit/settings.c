// SPDX-License-Identifier: Apache-2.0
#include "core/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "core/log.h"

static struct as_settings settings;
static char message[512];

static int read_all(const char *environment[])
{
    return as_settings_read(&settings, (char *const *)environment, message,
                            sizeof(message));
}

static int read_one(const char *entry)
{
    return read_all((const char *[]){"HOME=/root", entry, NULL});
}

static void expect_refused(const char *entry, const char *expected)
{
    cr_expect_eq(read_one(entry), -EINVAL, "%s", entry);
    cr_expect_str_eq(message, expected);
}

Test(settings, nothing_set_gives_the_defaults)
{
    cr_assert_eq(read_one("PATH=/bin"), 0);

    cr_expect_eq(settings.policy, AS_POLICY_OFF);
    cr_expect_eq(settings.offload_min_bytes, 4096);
    cr_expect_eq(settings.offload_keep_last, 0);
    cr_expect_str_eq(settings.report, "actswap-%i/rank%r.json");
    cr_expect_str_eq(settings.ranks, "all");
    cr_expect_eq(settings.log_level, -1);
    cr_expect(settings.strict);
    cr_expect_not(settings.digest);
    cr_expect_null(settings.run_id);
}

Test(settings, an_empty_value_is_unset)
{
    cr_expect_eq(read_one("ACTSWAP_POLICY="), 0);
    cr_expect_eq(settings.policy, AS_POLICY_OFF);
}

Test(settings, recompute_takes_its_options)
{
    cr_assert_eq(read_one("ACTSWAP_POLICY=recompute:every=3,blocks=h.*,boundary=offload"),
                 0);
    cr_expect_eq(settings.policy, AS_POLICY_RECOMPUTE);
    cr_expect_eq(settings.recompute_every, 3);
    cr_expect_str_eq(settings.recompute_blocks, "h.*");
    cr_expect(settings.recompute_boundary);
    cr_assert_eq(read_one("ACTSWAP_POLICY=recompute:segments=sqrt,boundary=keep"), 0);
    cr_expect(settings.recompute_sqrt);
    cr_expect_not(settings.recompute_boundary);
    cr_assert_eq(read_one("ACTSWAP_POLICY=recompute:segments=4"), 0);
    cr_expect_eq(settings.recompute_segments, 4);
    cr_assert_eq(read_one("ACTSWAP_POLICY=recompute"), 0);
    cr_expect_eq(settings.recompute_segments + settings.recompute_every, 0);
}

Test(settings, offload_takes_its_options)
{
    cr_assert_eq(read_one("ACTSWAP_POLICY=offload:min=1.5MiB,keep_last=3"), 0);

    cr_expect_eq(settings.policy, AS_POLICY_OFFLOAD);
    cr_expect_eq(settings.offload_min_bytes, 1572864);
    cr_expect_eq(settings.offload_keep_last, 3);
    cr_expect_not(settings.offload_boundary);
    cr_assert_eq(read_one("ACTSWAP_POLICY=offload:min=0"), 0);
    cr_expect_eq(settings.offload_min_bytes, 0);
    cr_assert_eq(read_one("ACTSWAP_POLICY=offload:only=all"), 0);
    cr_expect_not(settings.offload_boundary);
    cr_assert_eq(read_one("ACTSWAP_POLICY=offload:only=boundary"), 0);
    cr_expect(settings.offload_boundary);
}

Test(settings, a_wrong_policy_names_the_nearest)
{
    expect_refused("ACTSWAP_POLICY=offlaod",
                   "ACTSWAP_POLICY=offlaod is not a policy. Did you mean offload? "
                   "(off, offload, recompute)");
    expect_refused("ACTSWAP_POLICY=quick",
                   "ACTSWAP_POLICY=quick is not a policy (off, offload, recompute)");
    expect_refused("ACTSWAP_POLICY=hybrid",
                   "ACTSWAP_POLICY=hybrid is not there yet (off, offload, recompute)");
    expect_refused("ACTSWAP_POLICY=off:every=2",
                   "ACTSWAP_POLICY=off:every=2 has options, and off takes none");
    expect_refused("ACTSWAP_POLICY=recompute:everi=2",
                   "ACTSWAP_POLICY=recompute:everi=2 is not an option of recompute. Did "
                   "you mean every? (every, segments, blocks, boundary)");
    expect_refused("ACTSWAP_POLICY=recompute:min=1MiB",
                   "ACTSWAP_POLICY=recompute:min=1MiB is not an option of recompute "
                   "(every, segments, blocks, boundary)");
    expect_refused("ACTSWAP_POLICY=recompute:every=0",
                   "ACTSWAP_POLICY=recompute:every=0 does not give a number of blocks in "
                   "every (1, 2, ...)");
    expect_refused("ACTSWAP_POLICY=recompute:segments=root",
                   "ACTSWAP_POLICY=recompute:segments=root does not give a number of "
                   "segments (1, 2, ..., sqrt)");
    expect_refused("ACTSWAP_POLICY=recompute:segments=sqrt,every=2",
                   "ACTSWAP_POLICY=recompute:segments=sqrt,every=2 has both every and "
                   "segments: one of them says how many blocks belong together");
    expect_refused(
        "ACTSWAP_POLICY=recompute:boundary=ofload",
        "ACTSWAP_POLICY=recompute:boundary=ofload is not a way for boundaries. "
        "Did you mean offload? (keep, offload)");
    expect_refused("ACTSWAP_POLICY=recompute:blocks=",
                   "ACTSWAP_POLICY=recompute:blocks= does not give a pattern in blocks "
                   "(layers.*)");
    expect_refused("ACTSWAP_POLICY=offload:keep_lst=2",
                   "ACTSWAP_POLICY=offload:keep_lst=2 is not an option of offload. Did "
                   "you mean keep_last? (min, keep_last, only)");
    expect_refused(
        "ACTSWAP_POLICY=offload:only=boundar",
        "ACTSWAP_POLICY=offload:only=boundar is not a part of activations. Did "
        "you mean boundary? (all, boundary)");
    expect_refused("ACTSWAP_POLICY=offload:keep_last=-1",
                   "ACTSWAP_POLICY=offload:keep_last=-1 does not give a number of blocks "
                   "in keep_last");
}

Test(settings, an_unknown_name_is_refused_even_when_empty)
{
    expect_refused("ACTSWAP_POLCY=offload",
                   "ACTSWAP_POLCY is not a setting. Did you mean ACTSWAP_POLICY? "
                   "(actswap help env lists all)");
    expect_refused("ACTSWAP_COFFEE=",
                   "ACTSWAP_COFFEE is not a setting (actswap help env lists all)");
}

Test(settings, each_other_setting_refuses_nonsense)
{
    static const char *const wrong[] = {
        "ACTSWAP_STRICT=maybe",     "ACTSWAP_HOST_MEMORY=0", "ACTSWAP_HOST_MEMORY=101%",
        "ACTSWAP_HOST_MEMORY=12XB", "ACTSWAP_REPORT=a/%z",   "ACTSWAP_RANKS=0,,1",
        "ACTSWAP_RANKS=first",      "ACTSWAP_LOG=loud",      "ACTSWAP_LOG_FILE=%",
        "ACTSWAP_DIGEST=2",         "ACTSWAP_SIM_GPUS=0",    "ACTSWAP_SIM_ORDER=lat",
        "ACTSWAP_SIM_COMPUTE=all",  "ACTSWAP_MEMORY=0",      "ACTSWAP_MEMORY=50%",
        "ACTSWAP_MEMORY=forty",     "ACTSWAP_STACKS=alles",  "ACTSWAP_STEPS=0",
        "ACTSWAP_STEPS=three",      "ACTSWAP_BUDGET=0",      "ACTSWAP_BUDGET=0%",
        "ACTSWAP_BUDGET=101%",      "ACTSWAP_BUDGET=44 GiB", "ACTSWAP_DISK=/scratch",
        "ACTSWAP_DISK=:1GiB",       "ACTSWAP_DISK=1GiB",     "ACTSWAP_DISK=/a:b",
        "ACTSWAP_DISK=/a:1GiB/b",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        cr_expect_eq(read_one(wrong[i]), -EINVAL, "%s", wrong[i]);
        cr_expect_eq(strncmp(message, wrong[i], strlen(wrong[i])), 0, "%s", message);
    }
}

Test(settings, each_other_setting_takes_good_values)
{
    const char *environment[] = {
        "ACTSWAP_STRICT=no",          "ACTSWAP_HOST_MEMORY=50%",
        "ACTSWAP_REPORT=off",         "ACTSWAP_RANKS=0,7",
        "ACTSWAP_LOG=debug",          "ACTSWAP_LOG_FILE=log.%r",
        "ACTSWAP_SKIP=sh,make",       "ACTSWAP_DIGEST=ON",
        "ACTSWAP_RUN_ID=r1",          "ACTSWAP_SIM_GPU=l40s",
        "ACTSWAP_SIM_GPUS=2",         "ACTSWAP_SIM_ORDER=late",
        "ACTSWAP_SIM_COMPUTE=values", "ACTSWAP_MEMORY=40GiB",
        "ACTSWAP_BUDGET=90%",         "ACTSWAP_STACKS=all",
        "ACTSWAP_STEPS=20",           NULL,
    };

    cr_assert_eq(read_all(environment), 0, "%s", message);
    cr_expect_not(settings.strict);
    cr_expect_eq(settings.host_memory_percent, 50);
    cr_expect_null(settings.report);
    cr_expect_str_eq(settings.ranks, "0,7");
    cr_expect_eq(settings.log_level, AS_LOG_DEBUG);
    cr_expect(settings.digest);
    cr_expect(settings.native_stacks);
    cr_expect_eq(settings.sim_gpus, 2);
    cr_expect_eq(settings.memory_bytes, UINT64_C(40) << 30);
    cr_expect_eq(settings.budget_percent, 90);
    cr_expect_eq(settings.budget_bytes, 0);
    cr_assert_eq(read_one("ACTSWAP_BUDGET=44GB"), 0);
    cr_expect_eq(settings.budget_bytes, 44000000000);
    cr_expect_eq(settings.budget_percent, 0);
}

Test(settings, what_is_not_there_lists_what_is)
{
    expect_refused("ACTSWAP_STACKS=lines", "ACTSWAP_STACKS=lines is not a kind of stacks "
                                           "(python, native, all, none)");
    expect_refused("ACTSWAP_MEMORY=90%",
                   "ACTSWAP_MEMORY=90% is not a card's size (40GiB, 48GB, bytes)");
}

Test(settings, a_disk_is_a_folder_and_a_size)
{
    cr_assert_eq(read_one("ACTSWAP_DISK=/mnt/a:b/c d:1GiB"), 0, "%s", message);
    cr_expect_eq(settings.disk_folder_bytes, strlen("/mnt/a:b/c d"));
    cr_expect_eq(strncmp(settings.disk, "/mnt/a:b/c d:", 13), 0);
    cr_expect_eq(settings.disk_bytes, UINT64_C(1) << 30);

    expect_refused("ACTSWAP_DISK=/scratch",
                   "ACTSWAP_DISK=/scratch lacks a size: /scratch:64GiB");
    expect_refused("ACTSWAP_DISK=64GiB",
                   "ACTSWAP_DISK=64GiB lacks a folder: FOLDER:64GiB");
    expect_refused("ACTSWAP_DISK=:64GiB",
                   "ACTSWAP_DISK=:64GiB lacks a folder: FOLDER:64GiB");
    expect_refused(
        "ACTSWAP_DISK=/s:64Gigs",
        "ACTSWAP_DISK=/s:64Gigs does not end in a size: /s:64GiB (64GiB, 48GB, "
        "bytes)");
}

Test(settings, leniency_is_known_before_the_mistake)
{
    const char *environment[] = {"ACTSWAP_POLICY=nonsense", "ACTSWAP_STRICT=0", NULL};

    cr_expect_eq(read_all(environment), -EINVAL);
    cr_expect_not(settings.strict);
}

Test(settings, sizes)
{
    static const struct {
        const char *text;
        int err;
        uint64_t bytes;
    } cases[] = {
        {"0", 0, 0},
        {"512", 0, 512},
        {"512MiB", 0, 536870912},
        {"48GB", 0, 48000000000},
        {"1.5gib", 0, 1610612736},
        {"0.000000001TB", 0, 1000},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"16777216TiB", -ERANGE, 0},
        {"1.5", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"GiB", -EINVAL, 0},
        {"12 MiB", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"1G", -EINVAL, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t bytes = 77; // stays on an error

        cr_expect_eq(as_settings_bytes(cases[i].text, &bytes), cases[i].err, "%s",
                     cases[i].text);
        cr_expect_eq(bytes, cases[i].err ? 77 : cases[i].bytes, "%s: %lu", cases[i].text,
                     bytes);
    }
}

Test(settings, the_nearest_name)
{
    static const char *const names[] = {"off", "offload", "recompute", NULL};

    cr_expect_str_eq(as_settings_nearest("ofload", names), "offload");
    cr_expect_str_eq(as_settings_nearest("OFFLOAD", names), "offload");
    cr_expect_str_eq(as_settings_nearest("rec", names), "recompute");
    cr_expect_null(as_settings_nearest("swap", names));
    cr_expect_null(as_settings_nearest("on", names));
}

Test(settings, help_describes_every_setting)
{
    static const char *const names[] = {
        "STRICT",  "POLICY",   "HOST_MEMORY", "REPORT",      "RANKS",
        "LOG",     "SKIP",     "LOG_FILE",    "DIGEST",      "RUN_ID",
        "SIM_GPU", "SIM_GPUS", "SIM_ORDER",   "SIM_COMPUTE", "SIM_FAULT",
    };
    char text[8192], small[16], name[64];
    const size_t length = as_settings_help(text, sizeof(text));

    cr_assert_lt(length, sizeof(text));
    cr_expect_eq(strlen(text), length);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(name, sizeof(name), "ACTSWAP_%s=", names[i]);
        cr_expect_not_null(strstr(text, name), "%s", name);
    }
    cr_expect_eq(as_settings_help(small, sizeof(small)), length);
    cr_expect_eq(strlen(small), sizeof(small) - 1);
}

Test(settings, path_templates)
{
    char path[256], expected[256];

    cr_assert_eq(read_one("ACTSWAP_RUN_ID=a/b c"), 0);
    setenv("RANK", "3", 1);
    setenv("WHERE", "there", 1);
    unsetenv("NOWHERE");

    cr_assert_eq(as_settings_path(&settings, "%i/%r-%p-%%-%q{WHERE}-%q{NOWHERE}", path,
                                  sizeof(path)),
                 0);
    snprintf(expected, sizeof(expected), "a_b_c/3-%d-%%-there-unset", (int)getpid());
    cr_expect_str_eq(path, expected);
    cr_expect_eq(as_settings_path(&settings, "%q{WHERE", path, sizeof(path)), -EINVAL);
    cr_expect_eq(as_settings_path(&settings, "x%", path, sizeof(path)), -EINVAL);
    cr_expect_eq(as_settings_path(&settings, "%i", path, 5), -ENAMETOOLONG);
    cr_expect_eq(as_settings_path(&settings, "%i", path, 6), 0);
}

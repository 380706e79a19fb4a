// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include "core/clock.h"
#include "core/gpu.h"
#include "core/settings.h"
#include "pager/pager.h"
#include "report/json.h"
#include "report/oom.h"
#include "track/ledger.h"
#include "track/notes.h"
#include "track/steps.h"

static char folder[64], path[128];
static struct as_settings settings;
static struct as_notes notes, warnings;
static struct as_pager_totals pager;
static struct as_facts facts;
static json_t *parsed;

static void start(void)
{
    snprintf(folder, sizeof(folder), "/tmp/actswap-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/rank0.json", folder);
    pthread_mutex_init(&notes.lock, NULL);
    pthread_mutex_init(&warnings.lock, NULL);
    settings = (struct as_settings){.policy = AS_POLICY_OFFLOAD, .offload_keep_last = 2};
    facts = (struct as_facts){
        .settings = &settings,
        .ledger = as_ledger_create(),
        .segments = as_ledger_create(),
        .others = as_ledger_create(),
        .steps = as_steps_create(),
        .notes = &notes,
        .warnings = &warnings,
        .pager = &pager,
        .run_id = "r1",
        .framework = "torch 2.15.0",
        .path = path,
        .rank = 1,
        .world = 2,
        .device = "Simulated \"GPU\"\xff",
        .device_bytes = 4096,
        .simulated = true,
        .compute = "values",
        .source = AS_SOURCE_ALLOCATOR,
        .complete = true,
        .ended = "exit",
    };
}

static void finish(void)
{
    json_decref(parsed);
    as_steps_destroy(facts.steps);
    as_ledger_destroy(facts.others);
    as_ledger_destroy(facts.segments);
    as_ledger_destroy(facts.ledger);
    unlink(path);
    rmdir(folder);
}

TestSuite(report, .init = start, .fini = finish);

static json_t *written(void)
{
    json_error_t error;

    cr_assert_eq(as_report_write(path, &facts), 0);
    parsed = json_load_file(path, 0, &error);
    cr_assert_not_null(parsed, "line %d: %s", error.line, error.text);
    return parsed;
}

// "peak.by_category.0.bytes"
static json_t *at(json_t *root, const char *where)
{
    char key[64];

    while (root && *where) {
        const size_t length = strcspn(where, ".");

        snprintf(key, sizeof(key), "%.*s", (int)length, where);
        root = json_is_array(root) ? json_array_get(root, strtoul(key, NULL, 10))
                                   : json_object_get(root, key);
        where += length + (where[length] == '.');
    }
    cr_assert_not_null(root, "%s", key);
    return root;
}

static uint64_t number(json_t *root, const char *where)
{
    cr_assert(json_is_integer(at(root, where)), "%s", where);
    return (uint64_t)json_integer_value(at(root, where));
}

static const char *text(json_t *root, const char *where)
{
    cr_assert(json_is_string(at(root, where)), "%s", where);
    return json_string_value(at(root, where));
}

Test(report, of_a_run_that_did_nothing_is_complete_json)
{
    json_t *root = written();

    cr_expect_str_eq(text(root, "schema"), "actswap.report/1");
    cr_expect(json_is_true(at(root, "complete")));
    cr_expect_str_eq(text(root, "ended"), "exit");
    cr_expect_str_eq(text(root, "run.id"), "r1");
    cr_expect_str_eq(text(root, "run.torch"), "2.15.0");
    cr_expect_eq(number(root, "run.pid"), (uint64_t)getpid());
    cr_expect_eq(number(root, "run.rank"), 1);
    cr_expect_str_eq(text(root, "run.settings.policy"), "offload");
    cr_expect_eq(number(root, "run.settings.offload_keep_last"), 2);
    cr_expect_str_eq(text(root, "device.name"), "Simulated \"GPU\"\uFFFD");
    cr_expect(json_is_false(at(root, "device.measured")));
    cr_expect_str_eq(text(root, "device.compute"), "values");
    cr_expect_eq(json_array_size(at(root, "steps.peak_bytes")), 0);
}

Test(report, has_a_column_a_figure_and_a_list_of_losses_a_step)
{
    uint64_t step;

    for (int i = 0; i < 2; i++)
        as_steps_expect_root(facts.steps, &step);
    as_steps_root(facts.steps, 0, 0, "\x00\x00\x80\x3f", 4);
    as_steps_end(facts.steps, &(struct as_step){.peak_bytes = 1,
                                                .peak_reserved_bytes = 2,
                                                .after_forward_bytes = 3,
                                                .out_bytes = 4,
                                                .in_bytes = 5,
                                                .released_bytes = 6,
                                                .gradient_digest = 0xabc,
                                                .has_digest = true});
    as_steps_end(facts.steps, &(struct as_step){.peak_bytes = 7});

    json_t *root = written();
    cr_expect_eq(number(root, "steps.count"), 2);
    cr_expect_eq(number(root, "steps.peak_bytes.0"), 1);
    cr_expect_eq(number(root, "steps.peak_bytes.1"), 7);
    cr_expect_eq(number(root, "steps.peak_reserved_bytes.0"), 2);
    cr_expect_eq(number(root, "steps.after_forward_bytes.0"), 3);
    cr_expect_eq(number(root, "steps.out_bytes.0"), 4);
    cr_expect_eq(number(root, "steps.in_bytes.0"), 5);
    cr_expect_eq(number(root, "steps.released_bytes.0"), 6);
    cr_expect_str_eq(text(root, "steps.loss_bits.0.0"), "0x3f800000");
    cr_expect(json_is_null(at(root, "steps.loss_bits.0.1")), "asked for, not read");
    cr_expect_eq(json_array_size(at(root, "steps.loss_bits.1")), 0);
    cr_expect_str_eq(text(root, "steps.gradient_digest.0"), "0x0000000000000abc");
    cr_expect(json_is_null(at(root, "steps.gradient_digest.1")));
}

Test(report, of_a_real_device_has_the_time_of_steps)
{
    const uint64_t start = as_clock_started_ns();

    facts.simulated = false;
    as_steps_end(facts.steps, &(struct as_step){.end_ns = start + 5000000});
    as_steps_end(facts.steps, &(struct as_step){.end_ns = start + 7000000});

    json_t *root = written();
    cr_expect_eq(number(root, "steps.time_ns.0"), 5000000);
    cr_expect_eq(number(root, "steps.time_ns.1"), 2000000);
    cr_expect_null(json_object_get(root, "clock"));
    char summary[4096];
    as_report_summary(&facts, summary, sizeof(summary));
    cr_expect_not_null(strstr(summary, "  step time        2.0 ms\n"), "%s", summary);
}

Test(report, of_a_simulated_device_has_the_time_of_its_clock)
{
    const uint64_t start = as_clock_started_ns();

    as_steps_end(facts.steps,
                 &(struct as_step){.end_ns = start + 5000000, .device_ns = 70000000});
    as_steps_end(facts.steps,
                 &(struct as_step){.end_ns = start + 7000000, .device_ns = 90000000});
    facts.times = (struct as_times){.stalled_in_ns = 11, .kernels = 8, .unknown = 3};

    json_t *root = written();
    cr_expect_eq(number(root, "steps.time_ns.0"), 70000000);
    cr_expect_eq(number(root, "steps.time_ns.1"), 20000000);
    cr_expect_eq(number(root, "clock.stalled_in_ns"), 11);
    cr_expect_eq(number(root, "clock.kernels_unknown"), 3);
    char summary[4096];
    as_report_summary(&facts, summary, sizeof(summary));
    cr_expect_not_null(strstr(summary, "  step time        20 ms, simulated at the "
                                       "card's peak rates; 3 of 8 kernels take longer "
                                       "than is known\n"),
                       "%s", summary);
}

Test(report, of_a_long_run_says_which_steps_are_not_listed)
{
    enum { STEPS = 2500 };

    for (uint64_t i = 0; i < STEPS; i++)
        as_steps_end(facts.steps, &(struct as_step){.peak_bytes = i});

    json_t *root = written();
    json_t *peaks = at(root, "steps.peak_bytes");
    const uint64_t from = number(root, "steps.omitted_from");
    const uint64_t omitted = number(root, "steps.omitted_count");
    cr_expect_eq(json_array_size(peaks) + omitted, STEPS);
    for (uint64_t i = 0; i < json_array_size(peaks); i++)
        cr_assert_eq((uint64_t)json_integer_value(json_array_get(peaks, i)),
                     i < from ? i : i + omitted);
}

Test(report, tells_the_peak_by_category)
{
    as_ledger_place(facts.ledger, 3, AS_PHASE_BACKWARD);
    as_ledger_add(facts.ledger, 0, (void *)0x1000, 512, 2048, NULL);
    as_ledger_add(facts.ledger, 0, (void *)0x2000, 1024, 2048, NULL);
    as_ledger_tag(facts.ledger, 0, (void *)0x2000, ACTSWAP_PARAMETER);
    as_ledger_add(facts.segments, 0, (void *)0x1000, 4096, AS_LEDGER_ALL_LIVE, NULL);

    json_t *root = written();
    cr_expect_eq(number(root, "peak.bytes"), 1536);
    cr_expect_eq(number(root, "peak.reserved_bytes"), 2048);
    cr_expect_eq(number(root, "peak.driver_bytes"), 4096);
    cr_expect_eq(number(root, "peak.step"), 3);
    cr_expect_str_eq(text(root, "peak.phase"), "backward");
    cr_expect_str_eq(text(root, "peak.source"), "allocator");
    cr_expect_str_eq(text(root, "peak.by_category.0.category"), "unknown");
    cr_expect_str_eq(text(root, "peak.by_category.0.source"), "none");
    cr_expect_eq(number(root, "peak.by_category.1.bytes"), 1024);
    cr_expect_str_eq(text(root, "peak.by_category.1.category"), "parameter");
    cr_expect_str_eq(text(root, "peak.by_category.1.source"), "adapter");
}

static const char *summary(void)
{
    static char text[4096];

    as_report_summary(&facts, text, sizeof(text));
    return text;
}

Test(report, holds_the_peak_against_the_budget)
{
    as_ledger_budget(facts.ledger, facts.budget_bytes = 4096);
    as_ledger_place(facts.ledger, 6, AS_PHASE_BACKWARD);
    as_ledger_add(facts.ledger, 0, &facts, 4096, AS_LEDGER_ALL_LIVE, NULL);

    json_t *root = written();
    cr_expect_eq(json_integer_value(at(root, "run.settings.budget_bytes")), 4096);
    cr_expect_eq(json_integer_value(at(root, "budget.bytes")), 4096);
    cr_expect(json_is_true(at(root, "budget.kept")));
    cr_expect_eq(json_integer_value(at(root, "budget.spare_bytes")), 0);
    cr_expect_null(json_object_get(at(root, "budget"), "step"));
    cr_expect(strstr(summary(), "  budget           4.0 KiB: kept, 0 B to spare\n"));
    json_decref(root);

    as_ledger_add(facts.ledger, 0, &pager, 2048, AS_LEDGER_ALL_LIVE, NULL);
    as_ledger_place(facts.ledger, 9, AS_PHASE_FORWARD);
    as_ledger_add(facts.ledger, 0, &settings, 512, AS_LEDGER_ALL_LIVE, NULL);
    root = written();
    cr_expect(json_is_false(at(root, "budget.kept")));
    cr_expect_eq(json_integer_value(at(root, "budget.over_bytes")), 2560);
    cr_expect_eq(json_integer_value(at(root, "budget.step")), 6);
    cr_expect_str_eq(json_string_value(at(root, "budget.phase")), "backward");
    cr_expect(json_is_null(at(root, "budget.block")));
    cr_expect(strstr(summary(),
                     "  budget           4.0 KiB: exceeded by 2.5 KiB, first in "
                     "step 7, backward; nothing more could go\n"),
              "%s", summary());
    cr_expect_eq(json_integer_value(at(root, "budget.stayed_bytes")), 0);
    pager.stayed_over_bytes = 512;
    cr_expect(strstr(summary(), "backward; the step before had room\n"));
    cr_expect_eq(json_integer_value(at(written(), "budget.stayed_bytes")), 512);
    settings.policy = AS_POLICY_OFF;
    cr_expect(strstr(summary(), "step 7, backward\n"));
    cr_expect_null(json_object_get(at(written(), "budget"), "stayed_bytes"));
}

Test(report, without_a_budget_or_a_peak_nothing_is_held_against)
{
    as_ledger_add(facts.ledger, 0, &facts, 4096, AS_LEDGER_ALL_LIVE, NULL);
    json_t *root = written();

    cr_expect_null(json_object_get(root, "budget"));
    cr_expect_null(json_object_get(at(root, "run.settings"), "budget_bytes"));
    cr_expect_null(strstr(summary(), "budget"));
    json_decref(root);
    facts.budget_bytes = 4096;
    facts.source = AS_SOURCE_NONE;
    cr_expect_null(json_object_get(written(), "budget"));
}

Test(report, says_on_which_cards_there_is_room)
{
    const uint64_t gib = UINT64_C(1) << 30;

    settings.policy = AS_POLICY_OFF;
    as_ledger_add(facts.ledger, 0, (void *)0x1000, 30 * gib, AS_LEDGER_ALL_LIVE, NULL);
    facts.outside.comm_bytes = gib;
    facts.outside.other_bytes = gib / 2;
    as_steps_end(facts.steps, &(struct as_step){0});
    cr_expect_eq(json_array_size(at(written(), "verdict")), 0, "one step is too few");
    json_decref(parsed);

    as_steps_end(facts.steps, &(struct as_step){0});
    json_t *row, *rows = at(written(), "verdict");
    size_t n;
    json_array_foreach(rows, n, row)
    {
        const uint64_t total = as_gpu_table[n].total_bytes;
        const uint64_t margin = total / 100 * 3 > gib ? total / 100 * 3 : gib;
        const uint64_t usable = total - as_gpu_table[n].context_bytes - margin;
        const uint64_t needed = 31 * gib + gib / 2;

        cr_expect_str_eq(text(row, "gpu"), as_gpu_table[n].label);
        cr_expect_eq(number(row, "usable_bytes"), usable);
        cr_expect_eq(number(row, "peak_bytes"), needed);
        cr_expect_str_eq(text(row, "fits"), needed <= usable ? "as_is" : "no");
        cr_expect_eq(number(row, "short_bytes"), needed <= usable ? 0 : needed - usable);
        cr_expect_str_eq(text(row, "basis"), "simulated");
    }
    cr_expect_null(as_gpu_table[n].name, "a row for each card");
    cr_expect_str_eq(text(parsed, "steps.detected_by"), "user");
}

Test(report, a_run_that_had_no_room_fits_nowhere)
{
    const struct as_oom oom = {.asked_bytes = 512};

    facts.oom = &oom;
    as_ledger_add(facts.ledger, 0, (void *)0x1000, 512, AS_LEDGER_ALL_LIVE, NULL);
    for (int i = 0; i < 3; i++)
        as_steps_end(facts.steps, &(struct as_step){0});
    cr_expect_eq(json_array_size(at(written(), "verdict")), 0);
}

Test(report, tells_what_was_moved_kept_and_noted)
{
    pager = (struct as_pager_totals){
        .out_bytes = 1,
        .in_bytes = 2,
        .pinned_peak_bytes = 3,
        .pages_made = 4,
        .let_go = 5,
        .held_elsewhere = 6,
    };
    pager.kept[ACTSWAP_KEPT_SMALL] = 7;
    pager.kept_bytes[ACTSWAP_KEPT_SMALL] = 8;
    as_notes_add(&notes, "tab\there");
    as_notes_add(&warnings, "beware");

    json_t *root = written();
    cr_expect_eq(number(root, "moves.out_bytes"), 1);
    cr_expect_eq(number(root, "moves.in_bytes"), 2);
    cr_expect_eq(number(root, "moves.pinned_peak_bytes"), 3);
    cr_expect(json_is_null(at(root, "moves.pinned_cap_bytes")));
    cr_expect_eq(number(root, "moves.held_elsewhere"), 6);
    cr_expect_eq(json_array_size(at(root, "kept")), 1);
    cr_expect_eq(number(root, "kept.0.count"), 7);
    cr_expect_eq(number(root, "kept.0.bytes"), 8);
    cr_expect_str_eq(text(root, "notes.0.what"), "tab\there");
    cr_expect_str_eq(text(root, "warnings.0"), "beware");
}

Test(report, tells_what_the_disk_had_and_what_it_did_not_do)
{
    char summary[4096];
    cr_expect_null(json_object_get(at(written(), "moves"), "disk"));
    settings.disk = "/scratch:1GiB";
    pager = (struct as_pager_totals){
        .pages_made = 1,
        .disk = {.out_bytes = 2048,
                 .in_bytes = 1024,
                 .peak_bytes = 512,
                 .problem = "disk: full"},
    };

    json_t *root = written();
    cr_expect_eq(number(root, "moves.disk.out_bytes"), 2048);
    cr_expect_eq(number(root, "moves.disk.in_bytes"), 1024);
    cr_expect_eq(number(root, "moves.disk.peak_bytes"), 512);
    cr_expect_str_eq(text(root, "degraded.0.what"), "disk: full");
    as_report_summary(&facts, summary, sizeof(summary));
    cr_expect_not_null(strstr(summary, "out 2.0 KiB, in 1.0 KiB, at most 512 B there"));
    cr_expect_not_null(strstr(summary, "degraded         disk: full"));
}

Test(report, tells_what_the_machine_must_have_where_nothing_limits)
{
    char summary[4096];
    pager = (struct as_pager_totals){
        .pinned_peak_bytes = 3072,
        .pinned_cap_bytes = 4096,
        .pages_made = 1,
    };

    cr_expect_eq(number(written(), "moves.pinned_cap_bytes"), 4096);
    as_report_summary(&facts, summary, sizeof(summary));
    cr_expect_null(strstr(summary, "must have"), "%s", summary);
    pager.pinned_cap_bytes = UINT64_MAX;
    cr_expect(json_is_null(at(written(), "moves.pinned_cap_bytes")));
    as_report_summary(&facts, summary, sizeof(summary));
    cr_expect_not_null(strstr(summary, "the machine must have 3.0 KiB to pin"), "%s",
                       summary);
}

Test(report, that_cannot_be_written_leaves_the_old_one)
{
    json_decref(written());

    facts.path = "/proc/none/rank0.json";
    cr_expect_eq(as_report_write("/proc/none/rank0.json", &facts), -ENOENT);
    cr_expect_eq(as_report_write("/dev/full/rank0.json", &facts), -ENOTDIR);
    json_error_t error;
    parsed = json_load_file(path, 0, &error);
    cr_expect_not_null(parsed);
}

Test(report, a_full_disk_is_an_error_and_not_half_a_report)
{
    struct as_json json;
    FILE *full = fopen("/dev/full", "w");
    cr_assert_not_null(full);

    as_json_start(&json, fileno(full));
    for (int i = 0; i < 10000; i++)
        as_json_number(&json, NULL, 1);
    cr_expect_eq(as_json_finish(&json), -ENOSPC);
    fclose(full);
}

Test(report, the_summary_says_what_is_simulated_and_fits_a_screen)
{
    char summary[4096];
    int lines = 0;

    as_ledger_add(facts.ledger, 0, (void *)0x1000, 1024, 2048, NULL);
    as_ledger_tag(facts.ledger, 0, (void *)0x1000, ACTSWAP_ACTIVATION);
    as_steps_end(facts.steps, &(struct as_step){.peak_bytes = 1024});
    as_report_summary(&facts, summary, sizeof(summary));

    for (const char *at_line = summary; (at_line = strchr(at_line, '\n')); at_line++)
        lines++;
    cr_expect_lt(lines, 14, "%s", summary);
    cr_expect_not_null(strstr(summary, "(simulated, values)"), "%s", summary);
    cr_expect_not_null(strstr(summary, "1.0 KiB of 4.0 KiB (25 %)"), "%s", summary);
    cr_expect_not_null(strstr(summary, "activation 1.0 KiB"), "%s", summary);
    cr_expect_not_null(strstr(summary, path), "%s", summary);

    facts.simulated = false;
    as_report_summary(&facts, summary, sizeof(summary));
    cr_expect_not_null(strstr(summary, "(measured)"), "%s", summary);

    char small[32];
    as_report_summary(&facts, small, sizeof(small));
    cr_expect_eq(strlen(small), sizeof(small) - 1);
}

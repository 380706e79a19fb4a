// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <actswap/actswap.h>

#include "core/path.h"
#include "core/settings.h"
#include "core/text.h"
#include "pager/pager.h"
#include "report/budget.h"
#include "report/degraded.h"
#include "report/fit.h"
#include "report/memory.h"
#include "report/recompute.h"
#include "report/report.h"
#include "report/telemetry.h"
#include "track/ledger.h"
#include "track/notes.h"
#include "track/place.h"
#include "track/steps.h"

struct page {
    char *text;
    size_t bytes, used;
};

static void add(struct page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct page *page, const char *format, ...)
{
    va_list args;

    if (page->used >= page->bytes)
        return;
    va_start(args, format);
    const int length =
        vsnprintf(page->text + page->used, page->bytes - page->used, format, args);
    va_end(args);
    page->used += length > 0 ? (size_t)length : 0;
}

static void add_amount(struct page *page, uint64_t bytes)
{
    char amount[AS_TEXT_AMOUNT];

    add(page, "%s", as_text_amount(bytes, amount));
}

static void add_title(struct page *page, const struct as_facts *facts)
{
    const uint64_t steps = as_steps_count(facts->steps);
    char program[128];

    as_path_program(program, sizeof(program));
    add(page, "\nactswap  %s  rank %d of %d, %llu step%s", program, facts->rank,
        facts->world, (unsigned long long)steps, steps == 1 ? "" : "s");
    if (*facts->device)
        add(page, "  %s", facts->device);
    if (facts->device_bytes < facts->card_bytes) {
        add(page, ", pretending ");
        add_amount(page, facts->device_bytes);
    }
    if (facts->framework)
        add(page, "  %s", facts->framework);
    if (facts->simulated)
        add(page, "  (simulated, %s)\n", facts->compute);
    else
        add(page, "  (measured)\n");
}

static void add_peak(struct page *page, const struct as_facts *facts,
                     const struct as_ledger_totals *totals)
{
    add(page, "  peak on device   ");
    if (facts->source == AS_SOURCE_NONE) {
        add(page, "not known: no allocation was seen\n");
        return;
    }
    add_amount(page, totals->peak_bytes);
    if (facts->device_bytes) {
        add(page, " of ");
        add_amount(page, facts->device_bytes);
        add(page, " (%llu %%)",
            (unsigned long long)(totals->peak_bytes * 100 / facts->device_bytes));
    }
    struct as_peak peak;
    char block[AS_PLACE_TEXT];
    as_ledger_peak(facts->ledger, &peak);
    as_place_text(peak.block, block, sizeof(block));
    add(page, "  in step %llu, %s%s%s\n", (unsigned long long)totals->peak_step + 1,
        as_phase_name((enum as_phase)totals->peak_phase), *block ? " of " : "", block);
    add(page, "  reserved         ");
    add_amount(page, totals->peak_reserved_bytes);
    add(page, " at most\n");
}

static void add_budget(struct page *page, const struct as_facts *facts)
{
    char text[256];

    as_budget_say(facts, text, sizeof(text));
    if (*text)
        add(page, "  budget           %s\n", text);
}

static void add_last_step(struct page *page, const struct as_facts *facts)
{
    const uint64_t count = as_steps_count(facts->steps);
    struct as_step step;

    if (!count || !as_steps_read(facts->steps, count - 1, &step))
        return;
    add(page, "  last step        after forward ");
    add_amount(page, step.after_forward_bytes);
    add(page, ", peak ");
    add_amount(page, step.peak_bytes);
    add(page, "\n");
}

static void add_step_time(struct page *page, const struct as_facts *facts)
{
    const uint64_t ns = as_steps_median_ns(facts->steps);
    char time[AS_TEXT_AMOUNT];

    if (!ns)
        return;
    add(page, "  step time        %s", as_text_time(ns, time));
    if (facts->simulated)
        add(page, ", simulated at the card's peak rates");
    if (facts->times.unknown)
        add(page, "; %lu of %lu kernels take longer than is known", facts->times.unknown,
            facts->times.kernels);
    add(page, "\n");
}

static void add_disk(struct page *page, const struct as_disk_totals *disk)
{
    if (!disk->out_bytes)
        return;
    add(page, "  disk             out ");
    add_amount(page, disk->out_bytes);
    add(page, ", in ");
    add_amount(page, disk->in_bytes);
    add(page, ", at most ");
    add_amount(page, disk->peak_bytes);
    add(page, " there\n");
}

static void add_moves(struct page *page, const struct as_facts *facts,
                      const struct as_ledger_totals *totals)
{
    if (!facts->pager->pages_made)
        return;
    add(page, "  moved            out ");
    add_amount(page, facts->pager->out_bytes);
    add(page, ", in ");
    add_amount(page, facts->pager->in_bytes);
    add(page, ", released ");
    add_amount(page, totals->released_bytes);
    add(page, ", pinned ");
    add_amount(page, facts->pager->pinned_peak_bytes);
    add(page, "\n");
    add_disk(page, &facts->pager->disk);
    if (facts->pager->pinned_cap_bytes != UINT64_MAX)
        return;
    add(page, "  host memory      the machine must have ");
    add_amount(page, facts->pager->pinned_peak_bytes);
    add(page, " to pin; this one's is no limit here\n");
}

// The largest of what is left in `bytes`, taken out of it; -1: nothing is.
static int take_largest(uint64_t bytes[], size_t count, uint64_t *taken)
{
    size_t largest = 0;

    for (size_t i = 1; i < count; i++)
        largest = bytes[i] > bytes[largest] ? i : largest;
    *taken = bytes[largest];
    bytes[largest] = 0;
    return *taken ? (int)largest : -1;
}

static void add_categories(struct page *page, const struct as_facts *facts,
                           const struct as_ledger_totals *totals)
{
    uint64_t left[ACTSWAP_CATEGORIES], bytes;
    const char *label = "at the peak";
    struct as_peak peak;
    char advice[256];
    int category;

    memcpy(left, totals->peak_by_category, sizeof(left));
    while ((category = take_largest(left, ACTSWAP_CATEGORIES, &bytes)) >= 0) {
        char amount[AS_TEXT_AMOUNT];

        add(page, "  %-16s %s %s (%u %%)\n", label,
            actswap_category_name((enum actswap_category)category),
            as_text_amount(bytes, amount),
            (unsigned)(100 * (double)bytes / (double)totals->peak_bytes + 0.5));
        label = "";
    }
    as_ledger_peak(facts->ledger, &peak);
    as_report_advice(&peak, advice, sizeof(advice));
    char *rest = strstr(advice, ": "); // two lines of a screen's width
    if (rest)
        *rest = '\0';
    if (*advice)
        add(page, "  %-16s %s%s\n", "", advice, rest ? ":" : "");
    if (rest)
        add(page, "  %-16s %s\n", "", rest + 2);
}

static void add_losses(struct page *page, const struct as_facts *facts)
{
    struct as_steps *steps = facts->steps;
    const uint64_t count = as_steps_count(steps);
    uint64_t asked = 0, read = 0;
    struct as_step step;

    for (uint64_t number = 0; number < count; number++) {
        if (!as_steps_read(steps, number, &step))
            continue;
        for (unsigned i = 0; i < AS_ROOTS && i < step.root_count; i++) {
            asked++;
            read += step.roots[i].bytes > 0;
        }
    }
    if (asked && facts->simulated && strcmp(facts->compute, "shapes") == 0)
        add(page, "  losses           not computed: shapes has no values\n");
    else if (asked && !read && facts->simulated && strcmp(facts->compute, "auto") == 0)
        add(page, "  losses           not computed: --compute values does\n");
    else if (asked)
        add(page, "  losses           %llu of %llu read\n", (unsigned long long)read,
            (unsigned long long)asked);
}

static const char *plural(unsigned long count)
{
    return count == 1 ? "" : "s";
}

// What the program read, or asked for, and mode `auto` does not compute.
static void add_missed(struct page *page, const struct as_missed *missed)
{
    if (missed->refused)
        add(page, "  refused          %lu operator%s: the values are not computed\n",
            missed->refused, plural(missed->refused));
    if (missed->unknown)
        add(page, "  not computed     %lu read%s gave a placeholder\n", missed->unknown,
            plural(missed->unknown));
    if (missed->assumed)
        add(page, "  assumed          %lu read%s rest on numbers not computed\n",
            missed->assumed, plural(missed->assumed));
    if (missed->refused && missed->forgotten)
        add(page, "  forgotten        %lu launch%s left no values anywhere\n",
            missed->forgotten, missed->forgotten == 1 ? "" : "es");
    if (missed->refused || missed->unknown || missed->assumed)
        add(page, "                   --compute values computes everything\n");
}

static void add_kept(struct page *page, const struct as_pager_totals *pager)
{
    const char *label = "  left on device   ";

    for (int i = 0; i < ACTSWAP_KEPT_REASONS; i++) {
        if (!pager->kept[i])
            continue;
        add(page, "%s%llu x %s, ", label, (unsigned long long)pager->kept[i],
            actswap_reason_name((enum actswap_reason)i));
        add_amount(page, pager->kept_bytes[i]);
        add(page, "\n");
        label = "                   ";
    }
}

// The smallest card that has room, and the largest that has not.
static void add_fits(struct page *page, const struct as_facts *facts)
{
    const uint64_t needed = as_fit_needed_bytes(facts);
    const struct as_gpu *gpu = as_gpu_table, *lacking = NULL;

    for (; gpu->name && needed > as_fit_usable_bytes(gpu); gpu++)
        lacking = gpu;
    if (!needed)
        return;
    add(page, "  fits             ");
    if (gpu->name) {
        const enum as_policy policy = facts->settings->policy;
        add(page, "%s %s, ", gpu->label,
            policy == AS_POLICY_OFF ? "as it is" : as_policy_name(policy));
        add_amount(page, as_fit_usable_bytes(gpu) - needed);
        add(page, " to spare");
    }
    if (lacking) {
        add(page, "%s%s is ", gpu->name ? "; " : "", lacking->label);
        add_amount(page, needed - as_fit_usable_bytes(lacking));
        add(page, " short");
    }
    add(page, "\n");
}

static void add_notes(struct page *page, struct as_notes *notes, const char *label)
{
    struct as_note note;

    for (size_t i = 0; (note = as_notes_read(notes, i)).what; i++) {
        add(page, "  %-16s %s", i ? "" : label, note.what);
        if (note.count > 1)
            add(page, ", %llu times", (unsigned long long)note.count);
        add(page, "\n");
    }
}

static void add_recompute(struct page *page, const struct as_facts *facts)
{
    char text[512];

    for (size_t line = 0;; line++) {
        as_recompute_say(facts, line, text, sizeof(text));
        if (!*text)
            return;
        add(page, "  %-16s %s\n", line ? (line == 1 ? "not run again" : "") : "recompute",
            text);
    }
}

static void add_telemetry(struct page *page, const struct as_facts *facts)
{
    char text[256];

    as_telemetry_say(facts, text, sizeof(text));
    if (*text)
        add(page, "  device time      %s\n", text);
}

static void add_races(struct page *page, const struct as_races *races)
{
    if (races->pairs)
        add(page, "  races            %lu found: the lines `simcuda: race` say where\n",
            races->pairs);
    else if (races->checked)
        add(page, "  races            none found\n");
}

static void add_degraded(struct page *page, const struct as_pager_totals *pager)
{
    char what[AS_DEGRADED_BYTES];
    for (unsigned i = 0; as_degraded_text(pager, i, what); i++)
        add(page, "  degraded         %s\n", what);
}

void as_report_summary(const struct as_facts *facts, char *text, size_t text_bytes)
{
    struct page page = {text, text_bytes, 0};
    struct as_ledger_totals totals;

    *text = '\0';
    as_ledger_totals(facts->ledger, -1, &totals);
    add_title(&page, facts);
    add_peak(&page, facts, &totals);
    add_budget(&page, facts);
    add_categories(&page, facts, &totals);
    add_step_time(&page, facts);
    add_last_step(&page, facts);
    add_moves(&page, facts, &totals);
    if (facts->settings->policy == AS_POLICY_OFFLOAD)
        add_kept(&page, facts->pager);
    add_recompute(&page, facts);
    add_telemetry(&page, facts);
    add_degraded(&page, facts->pager);
    add_losses(&page, facts);
    add_fits(&page, facts);
    add_missed(&page, &facts->missed);
    add_races(&page, &facts->races);
    add_notes(&page, facts->notes, "left alone");
    add_notes(&page, facts->warnings, "warnings");
    if (facts->path)
        add(&page, "  report           %s\n", facts->path);
}

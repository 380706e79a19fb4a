// SPDX-License-Identifier: Apache-2.0
#include "cli/report/merged.h"

#include "cli/field.h"

#include <errno.h>

static json_t *number(uint64_t value)
{
    return value == AS_NOT_KNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *missing_ranks(const struct as_run *run)
{
    json_t *const list = json_array();
    size_t next = 0;
    for (uint64_t rank = 0; rank < run->world; rank++) {
        while (next < run->count && run->ranks[next].rank < rank)
            next++;
        if (next == run->count || run->ranks[next].rank != rank)
            (void)json_array_append_new(list, number(rank));
    }
    return list;
}

static json_t *one_rank(const struct as_rank *rank)
{
    return json_pack(
        "{s:o, s:s?, s:o, s:o, s:o, s:o, s:O?, s:O?}", "rank", number(rank->rank), "file",
        rank->file, "peak_bytes", number(rank->peak_bytes), "reserved_bytes",
        number(rank->reserved_bytes), "step_ns", number(rank->step_ns), "pid",
        number(rank->pid), "report", rank->report, "oom_report", rank->oom);
}

static json_t *one_run(const struct as_run *run)
{
    json_t *const ranks = json_array();
    for (size_t n = 0; n < run->count; n++)
        (void)json_array_append_new(ranks, one_rank(&run->ranks[n]));
    const uint64_t slowest =
        run->has_slowest ? run->ranks[run->slowest].rank : AS_NOT_KNOWN;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", run->name,
                     "policy", run->policy, "folder", run->folder, "world_size",
                     number(run->world), "missing_ranks", missing_ranks(run),
                     "highest_peak_rank", number(run->ranks[run->highest].rank),
                     "slowest_rank", number(slowest), "ranks", ranks);
}

int as_report_merged(const struct as_runs *runs, FILE *out)
{
    json_t *const all = json_array();
    for (size_t n = 0; n < runs->count; n++)
        (void)json_array_append_new(all, one_run(&runs->runs[n]));
    json_t *const root = json_pack("{s:s, s:s, s:o}", "schema", AS_MERGED_SCHEMA,
                                   "actswap", AS_VERSION, "runs", all);
    if (!root)
        return -ENOMEM;
    const int err = json_dumpf(root, out, JSON_COMPACT) || fputc('\n', out) == EOF;
    json_decref(root);
    return err ? -EIO : 0;
}

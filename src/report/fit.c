// SPDX-License-Identifier: Apache-2.0
#include "report/fit.h"

#include "core/settings.h"
#include "report/json.h"
#include "report/report.h"
#include "track/ledger.h"
#include "track/steps.h"

#define MARGIN_BYTES (UINT64_C(1) << 30)

enum { MARGIN_PERCENT = 3 };

uint64_t as_fit_needed_bytes(const struct as_facts *facts)
{
    struct as_ledger_totals totals;
    struct as_peak peak;

    if (facts->source != AS_SOURCE_ALLOCATOR || facts->oom ||
        as_steps_count(facts->steps) < 2)
        return 0;
    as_ledger_peak(facts->ledger, &peak);
    as_ledger_totals(facts->ledger, peak.device, &totals);
    return totals.peak_bytes + facts->outside.comm_bytes + facts->outside.other_bytes;
}

uint64_t as_fit_usable_bytes(const struct as_gpu *gpu)
{
    const uint64_t share = gpu->total_bytes / 100 * MARGIN_PERCENT;
    const uint64_t margin = share > MARGIN_BYTES ? share : MARGIN_BYTES;
    const uint64_t kept = gpu->context_bytes + margin;

    return gpu->total_bytes > kept ? gpu->total_bytes - kept : 0;
}

void as_fit_write(struct as_json *json, const struct as_facts *facts)
{
    const uint64_t needed = as_fit_needed_bytes(facts);
    const enum as_policy policy = facts->settings->policy;
    const char *way = policy == AS_POLICY_OFF ? "as_is" : as_policy_name(policy);

    as_json_open(json, "verdict", '[');
    for (const struct as_gpu *gpu = as_gpu_table; needed && gpu->name; gpu++) {
        const uint64_t usable = as_fit_usable_bytes(gpu);

        as_json_open(json, NULL, '{');
        as_json_text(json, "gpu", gpu->label);
        as_json_number(json, "usable_bytes", usable);
        as_json_text(json, "fits", needed <= usable ? way : "no");
        as_json_number(json, "peak_bytes", needed);
        as_json_number(json, "short_bytes", needed > usable ? needed - usable : 0);
        as_json_text(json, "basis", facts->simulated ? "simulated" : "measured");
        as_json_close(json, '}');
    }
    as_json_close(json, ']');
}

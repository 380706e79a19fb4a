// SPDX-License-Identifier: Apache-2.0
#include "report/degraded.h"

#include <inttypes.h>
#include <stdio.h>

#include "pager/pager.h"
#include "track/telemetry.h"

static void say_refused(const struct as_refused *refused, char text[AS_DEGRADED_BYTES])
{
    snprintf(text, AS_DEGRADED_BYTES,
             "pager: %s was refused %lu %s, at first with CUDA error %d",
             refused->function, refused->count, refused->count == 1 ? "time" : "times",
             refused->error);
}

static bool say_telemetry(char text[AS_DEGRADED_BYTES])
{
    struct as_telemetry telemetry;

    as_telemetry_read(&telemetry);
    if (telemetry.state == AS_TELEMETRY_MISSING)
        snprintf(text, AS_DEGRADED_BYTES, "device times: not measured: %s",
                 telemetry.reason);
    else if (telemetry.state == AS_TELEMETRY_CUT)
        snprintf(text, AS_DEGRADED_BYTES, "device times: %s, and none are measured since",
                 telemetry.reason);
    else if (telemetry.dropped)
        snprintf(text, AS_DEGRADED_BYTES, "device times: CUPTI lost %" PRIu64 " records",
                 telemetry.dropped);
    else
        return false;
    return true;
}

bool as_degraded_text(const struct as_pager_totals *pager, unsigned index,
                      char text[AS_DEGRADED_BYTES])
{
    if (*pager->disk.problem && index-- == 0) {
        snprintf(text, AS_DEGRADED_BYTES, "%s", pager->disk.problem);
        return true;
    }
    if (pager->by_host && index-- == 0) {
        snprintf(text, AS_DEGRADED_BYTES,
                 "pager: the program waited for %" PRIu64
                 " tensors that came back, as the device refused a call",
                 pager->by_host);
        return true;
    }
    for (unsigned i = 0; i < AS_REFUSED_MAX && pager->refused[i].count; i++) {
        if (index-- == 0) {
            say_refused(&pager->refused[i], text);
            return true;
        }
    }
    return index == 0 && say_telemetry(text);
}

// SPDX-License-Identifier: Apache-2.0
#include "report/degraded.h"

#include <inttypes.h>
#include <stdio.h>

#include "pager/pager.h"

static void say_refused(const struct as_refused *refused, char text[AS_DEGRADED_BYTES])
{
    snprintf(text, AS_DEGRADED_BYTES,
             "pager: %s was refused %lu %s, at first with CUDA error %d",
             refused->function, refused->count, refused->count == 1 ? "time" : "times",
             refused->error);
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
    if (index >= AS_REFUSED_MAX || !pager->refused[index].count)
        return false;
    say_refused(&pager->refused[index], text);
    return true;
}

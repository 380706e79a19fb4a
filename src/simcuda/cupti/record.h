// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_RECORD_H
#define AS_SIMCUDA_CUPTI_RECORD_H

// Activity records: which kinds are wanted, what was recorded, and its way into the
// buffers of whoever traces. The layouts are those of the header that this is built
// with. Buffers are asked for and handed over within calls of the program's that end, and
// within flushes, with no lock held.
//
// Thread-safety: every function may be called from any thread.

#include <cupti.h>
#include <stdbool.h>
#include <stddef.h>

union sim_record {
    CUpti_ActivityKind kind;
    CUpti_ActivityKernel11 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 fill;
    CUpti_ActivityAPI api;
    CUpti_ActivitySynchronization2 wait;
    CUpti_ActivityExternalCorrelation external;
};

// 0: a kind that there are no records of.
size_t sim_record_bytes(CUpti_ActivityKind kind);

bool sim_records_enable(CUpti_ActivityKind kind, bool enable); // false: not known
bool sim_records_wants(CUpti_ActivityKind kind);
bool sim_records_wants_any(void);

void sim_records_use(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete);

// Its times are sim_time_host's and sim_time_device's.
void sim_records_add(const union sim_record *record);

// Hands over all that there are.
void sim_records_deliver(void);
// After a call of the program's: sees to a buffer, and hands over what has become many.
void sim_records_settle(void);

// How many were lost for want of a buffer since the last call.
size_t sim_records_dropped(void);

// In a forked child: nothing was recorded and nobody wants any.
void sim_records_forget(void);

#endif

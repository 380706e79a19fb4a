// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_CUPTI_SUBSCRIBER_H
#define AS_SIMCUDA_CUPTI_SUBSCRIBER_H

// The one subscriber to callbacks: called as the program's calls of the runtime and of the
// driver begin and end.
//
// Thread-safety: every function may be called from any thread.

#include <cupti.h>
#include <stdbool.h>

struct sim_traced_call;

bool sim_subscriber_is_there(void);
void sim_subscriber_leave(void);

// Tells the subscriber, if it asked for that.
void sim_subscriber_tell(const struct sim_traced_call *call, CUpti_ApiCallbackSite site);

#endif

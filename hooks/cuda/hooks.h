// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUDA_HOOKS_H
#define AS_HOOKS_CUDA_HOOKS_H

// The functions behind the hooked calls.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>

#include "calls.h"

#define AS_HOOK_ID(api, name, ...) AS_HOOK_##name,
enum as_hook {
    AS_RUNTIME_CALLS(AS_HOOK_ID) //
    AS_DRIVER_CALLS(AS_HOOK_ID) //
    AS_OWN_CALLS(AS_HOOK_ID) AS_HOOK_COUNT
};
#undef AS_HOOK_ID

// The function behind ours, for a call that comes from `caller`: with two runtimes in a
// process each caller gets its own. NULL: there is none.
void *as_hook_real(enum as_hook hook, const void *caller);

const char *as_hook_name(enum as_hook hook);

// Counts how deep this thread is in interposed calls. True at the outermost: what the
// driver calls from inside an interposed call is part of that call.
bool as_hook_enter(void);
void as_hook_leave(void);

#endif

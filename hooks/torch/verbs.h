// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_VERBS_H
#define AS_TORCH_VERBS_H

// What the library asks of PyTorch: device memory of its caching allocator. A reference
// is a Python reference to an UntypedStorage.
//
// Thread-safety: the library calls verbs on the thread that called it, which holds the
// GIL.

#include <stdbool.h>

#include <actswap/actswap.h>

extern const struct actswap_verbs as_verbs;

// The exception of this thread's last failed allocation becomes the current one. False:
// there was none.
bool as_verbs_raise(void);

#endif

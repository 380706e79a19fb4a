// SPDX-License-Identifier: Apache-2.0
//
// A library that uses CUDA from its constructor, before main and perhaps before ours is
// set up.
#include "calls.h"

__attribute__((constructor)) static void start(void)
{
    hook_calls();
}

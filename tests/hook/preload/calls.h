// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_PRELOAD_CALLS_H
#define AS_TESTS_HOOK_PRELOAD_CALLS_H

__attribute__((visibility("default"))) void hook_calls(void);

#endif

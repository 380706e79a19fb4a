// SPDX-License-Identifier: Apache-2.0
#ifndef FAKE_FILE_H
#define FAKE_FILE_H

// The system's calls on files, in front of the real ones: refused, spoilt or held up by
// count. The names are open, fcntl, fallocate, pwrite and pread.

#include <stdbool.h>

// The `nth` call (1: the next) fails with `err`; `always`: and all after it.
void fake_file_fail(const char *function, int nth, int err, bool always);

// Of the `nth` call one byte arrives changed; `always`: and of all after it.
void fake_file_spoil(const char *function, int nth, bool always);

// From now on calls wait, until they are let through again.
void fake_file_hold(const char *function);
void fake_file_await_held(const char *function); // until one does
void fake_file_let_through(const char *function);

// Back to the real ones; calls are counted anew.
void fake_file_reset(void);
int fake_file_calls(const char *function);

#endif

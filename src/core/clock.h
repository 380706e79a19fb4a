// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_CLOCK_H
#define AS_CORE_CLOCK_H

// Thread-safety: every function may be called from any thread.

#include <stdint.h>

// Grows steadily; for durations.
uint64_t as_clock_ns(void);

// Since 1970; for people.
uint64_t as_clock_unix_ns(void);

// as_clock_ns() when this process first asked: what a report's times count from.
uint64_t as_clock_started_ns(void);

// Since 1970, when this process first asked: it stays the same from then on.
uint64_t as_clock_started_unix_ns(void);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_HOST_H
#define AS_PAGER_HOST_H

// How much host memory there is to pin: what the kernel calls available, the control
// group's limit, and what the settings allow of the smaller one.
//
// Thread-safety: every function may be called from any thread.

#include <stdint.h>

struct as_settings;

// Bytes that the process may still take, by <root>/proc/meminfo and the memory limit of
// its control group (either version) under <root>/sys/fs/cgroup. `root` is "" but for
// tests. 0: unknown.
uint64_t as_host_available(const char *root);

// The cap of pinned memory: a size from the settings, or else a share, of this rank's
// part of `available`. An explicit size is cut to nine tenths of it, as pinning more
// would end the process. `ranks` processes share the machine; 0 counts as 1.
uint64_t as_host_cap(const struct as_settings *settings, uint64_t available,
                     unsigned ranks);

#endif

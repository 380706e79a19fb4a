// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_EXPORT_H
#define AS_CORE_EXPORT_H

// Marks what the library shows to others: everything else is hidden, so that no name of
// ours can replace one of the program's. scripts/check-symbols has the list.
#define AS_EXPORT __attribute__((visibility("default")))

#endif

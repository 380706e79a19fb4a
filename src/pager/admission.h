// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_ADMISSION_H
#define AS_PAGER_ADMISSION_H

// Which saved storages become pages: one table, with a reason for each refusal.

#include <stdbool.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "core/settings.h"
#include "track/ledger.h"

// What a decision looks at.
struct as_admission {
    const struct actswap_saved *saved;
    const struct as_settings *settings;
    const struct as_block *block; // NULL: the ledger has no block that holds it
    uint64_t forward_generation; // that the running forward began with
    uint64_t block_generation; // that the outermost block began with; 0: outside
    bool attached, backward;
    bool coherent; // the device's memory is the host's
    enum actswap_verdict verdict; // on the block that this thread is in
};

// May this storage be moved at all?
enum actswap_reason as_admission_allowed(const struct as_admission *admission);

// If so, is it worth a page of its own? (One that has a page is always worth joining.)
enum actswap_reason as_admission_worth(const struct as_admission *admission);

#endif

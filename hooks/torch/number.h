// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_NUMBER_H
#define AS_TORCH_NUMBER_H

// The number that autograd gives to the next node that this thread makes.
//
// A backward runs nodes that are ready by their numbers, so they decide in which order
// gradients are added up. Each thread counts for itself. Nodes of a block that is
// recomputed are thrown away, but would number those after them otherwise than without
// us: a backward through a backward then rounds otherwise. So the count is put back.
//
// Thread-safety: bind once, under the GIL; the rest from any thread.

#include <stdbool.h>
#include <stdint.h>

// False: this PyTorch keeps its count where it was not found. Tried on 2.14 and 2.15.
bool as_number_bind(void);
// Both do nothing, and the first gives 0, when it was not bound.
uint64_t as_number_next(void);
void as_number_put_back(uint64_t number);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_RUNTIME_CODE_H
#define AS_SIMCUDA_RUNTIME_CODE_H

// Which of the architectures that a program was compiled for a card runs, by the rules
// of NVIDIA's "CUDA Compiler Driver NVCC", GPU Compilation: binary code of X.y runs on
// X.z with z >= y, of sm_XYa on X.Y alone, of sm_XYf on its family, which is taken for
// X.z with z >= y; intermediate code is compiled for any later card.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>

struct sim_code {
    int binary; // 10 * major + minor, of the code that runs
    int intermediate; // of what it was compiled from
};

// What `list` ("sm_80 sm_86 compute_90") has for a card. false: nothing. A list that is
// empty or NULL: not known, so code of the card's own.
bool sim_code_choose(const char *list, int major, int minor, struct sim_code *code);

// The list that the whole process is taken to be compiled for. It is copied.
void sim_code_is(const char *list);

bool sim_code_for(int major, int minor, struct sim_code *code);

#endif

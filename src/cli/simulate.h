// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_SIMULATE_H
#define AS_CLI_SIMULATE_H

#include "cli/options.h"

#define AS_SIMULATE_GPU "h100-80gb"
#define AS_SIMULATE_ORDER "early"

// Checks --gpu, --compute and --order and puts the simulated GPU under what is started
// next, computing by default as `otherwise` says. 0 or an exit code after one line.
int as_simulate(const struct as_options *options, const char *otherwise);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "cli/error.h"
#include "cli/verbs.h"

int as_verb_compare(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return as_error(AS_EXIT_USAGE, "compare is not built yet");
}

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_OPTIONS_H
#define AS_CLI_OPTIONS_H

// The options of the verbs. Each verb has its own list, made from one table.

#include <stdbool.h>

struct as_options {
    const char *verb;
    const char *gpu; // NULL: not given
    const char *policy; // as given to -p, or NULL
    const char *budget; // as given to -b, or NULL
    const char *disk; // as given to -d, or NULL
    const char *steps; // as given to --steps, or NULL
    const char *compute; // NULL: not given
    const char *check;
    const char *order; // NULL: not given
    const char *folder; // -o, or NULL
    bool force; // -f: the folder may exist
    bool ascii;
    bool text, json; // of report
    const char *html; // a file, or NULL
    const char *rank, *top; // as given, or NULL
    bool open; // show the page in a browser
    bool help;
    int understood; // the first argument that is not, where parsing fails
    char **program; // what follows the options, NULL-terminated, may be empty; for
        // report, the folders and files
};

// Parses argv[1..] for one of "rehearse", "run", "compare" and "report". Returns 0, or
// AS_EXIT_USAGE after one line on stderr. --help prints and exits with 0. The strings
// are argv's.
int as_options_parse(struct as_options *options, const char *verb, int argc, char **argv);

#endif

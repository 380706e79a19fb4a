// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_VERBS_H
#define AS_CLI_VERBS_H

// The verbs of the command. argv[0] is the verb; each returns the exit code.

int as_verb_rehearse(int argc, char **argv);
int as_verb_run(int argc, char **argv);
int as_verb_compare(int argc, char **argv);
int as_verb_report(int argc, char **argv);
int as_verb_help(int argc, char **argv);

#endif

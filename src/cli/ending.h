// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_ENDING_H
#define AS_CLI_ENDING_H

// How a run on the simulated GPU ended badly. `log` is where the program's own output
// went, NULL: the terminal.

// The program's own way to say that it gave up, which need not be explained again.
enum {
    AS_STATUS_SIM_FAILED = 70, // sim_fail()
    AS_STATUS_BAD_SETTING = 78,
};

// Prints why the program never reached CUDA, as far as that can be found out: PyTorch is
// missing, is one without CUDA, or was simply not asked. `path` and `program` as they
// were started, `status` as of waitpid(). Returns the exit code of the command: the
// program's own if that is a failure, else AS_EXIT_FAILED.
int as_ending_explain(const char *path, char *const program[], int status,
                      const char *log);

// Prints that the program failed after it used CUDA, and where its report lies.
void as_ending_failed(char *const program[], int status, const char *log,
                      const char *report);

#endif

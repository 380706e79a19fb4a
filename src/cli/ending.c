// SPDX-License-Identifier: Apache-2.0
#include "cli/ending.h"

#include "cli/check.h"
#include "cli/error.h"
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_BYTES = 256, FLAGS_MAX = 8 };

// Asks as the script would: its own folder comes first on sys.path. version.py is a few
// assignments; importing torch itself would take seconds.
static const char question[] =
    "import sys, importlib.util as u, os, runpy\n"
    "sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[1])) if sys.argv[1] else ''\n"
    "spec = u.find_spec('torch')\n"
    "if spec is None or spec.origin is None: print('none')\n"
    "else:\n"
    "    v = runpy.run_path(os.path.join(os.path.dirname(spec.origin), 'version.py'))\n"
    "    print('cuda' if v.get('cuda') else 'cpu', v.get('__version__', ''))\n";

static const char *script_name(char *const program[])
{
    const char *const script =
        as_check_is_python(program[0]) ? as_check_script(program) : NULL;
    const char *const name = script ? script : program[0];
    const char *const slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// The interpreter of `#!/usr/bin/python3` or `#!/usr/bin/env python3`.
static bool read_shebang(const char *path, char *interpreter, size_t bytes)
{
    FILE *const file = fopen(path, "re");
    if (!file)
        return false;
    char line[PATH_MAX] = "";
    const bool has = fgets(line, sizeof(line), file) && !strncmp(line, "#!", 2);
    (void)fclose(file);
    if (!has)
        return false;
    char *rest = NULL;
    const char *word = strtok_r(line + 2, " \t\n", &rest);
    const size_t length = word ? strlen(word) : 0;
    if (length >= 4 && !strcmp(word + length - 4, "/env"))
        word = strtok_r(NULL, " \t\n", &rest);
    if (!word || !as_check_is_python(word))
        return false;
    (void)snprintf(interpreter, bytes, "%s", word);
    return true;
}

static _Noreturn void ask_in_child(const char *interpreter, char *const flags[],
                                   const char *script, int out)
{
    const char *arguments[FLAGS_MAX + 5] = {interpreter};
    size_t count = 1;
    for (size_t n = 0; n < FLAGS_MAX && flags[n]; n++)
        arguments[count++] = flags[n];
    arguments[count++] = "-c";
    arguments[count++] = question;
    arguments[count] = script;

    (void)unsetenv("LD_PRELOAD");
    const int null = open("/dev/null", O_RDWR);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    (void)execvp(interpreter, (char *const *)arguments);
    _exit(AS_EXIT_NOT_FOUND);
}

// The first line of what the interpreter says; "" if it says nothing.
static void ask(const char *interpreter, char *const flags[], const char *script,
                char answer[static ANSWER_BYTES])
{
    answer[0] = '\0';
    int out[2];
    if (pipe2(out, O_CLOEXEC))
        return;
    const pid_t child = fork();
    if (!child)
        ask_in_child(interpreter, flags, script, out[1]);
    (void)close(out[1]);
    size_t used = 0;
    while (child > 0 && used < ANSWER_BYTES - 1) {
        const ssize_t got = read(out[0], answer + used, ANSWER_BYTES - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    (void)close(out[0]);
    answer[used] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    if (child > 0)
        (void)waitpid(child, NULL, 0);
}

// Says what is wrong with the PyTorch that the program would import. False: nothing is.
static bool explain_pytorch(const char *path, char *const program[])
{
    char interpreter[PATH_MAX];
    char *flags[FLAGS_MAX + 1] = {0};
    const char *script = "";
    if (as_check_is_python(path)) {
        (void)snprintf(interpreter, sizeof(interpreter), "%s", path);
        script = as_check_script(program) ? as_check_script(program) : "";
        // -I, -E, -s and the like decide which packages it sees.
        for (size_t n = 0; n < FLAGS_MAX; n++) {
            const char *const flag = program[n + 1];
            if (!flag || flag[0] != '-' ||
                strspn(flag + 1, "IEsSB") != strlen(flag + 1) || !flag[1])
                break;
            flags[n] = program[n + 1];
        }
    } else if (read_shebang(path, interpreter, sizeof(interpreter))) {
        script = path;
    } else {
        return false;
    }

    char answer[ANSWER_BYTES];
    ask(interpreter, flags, script, answer);
    if (!strcmp(answer, "none")) {
        as_error(AS_EXIT_FAILED,
                 "%s never used CUDA: PyTorch is not installed for %s; "
                 "%s -m pip install torch",
                 script_name(program), interpreter, interpreter);
        return true;
    }
    if (!strncmp(answer, "cpu ", 4)) {
        as_error(AS_EXIT_FAILED,
                 "%s never used CUDA: PyTorch %s of %s has none; "
                 "%s -m pip install --force-reinstall torch",
                 script_name(program), answer + 4, interpreter, interpreter);
        return true;
    }
    return false;
}

// One line is enough, and it is the library's own.
static bool has_explained_itself(int status)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return code == AS_STATUS_SIM_FAILED || code == AS_STATUS_BAD_SETTING;
}

int as_ending_explain(const char *path, char *const program[], int status,
                      const char *log)
{
    const bool failed = status != 0;
    const int code = !failed               ? AS_EXIT_FAILED
                     : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                           : WEXITSTATUS(status);
    if (has_explained_itself(status) && !log)
        return code;
    if (explain_pytorch(path, program))
        return code;
    if (failed) {
        char how[64];
        as_launch_describe(status, how, sizeof(how));
        return as_error((enum as_exit)code,
                        "%s ended with %s before it used CUDA; its own message is %s%s",
                        script_name(program), how, log ? "in " : "above", log ? log : "");
    }
    return as_error(AS_EXIT_FAILED,
                    "%s never used CUDA: nothing was moved to the device "
                    "(model.to(\"cuda\")), so there is nothing to report",
                    script_name(program));
}

void as_ending_failed(char *const program[], int status, const char *log,
                      const char *report)
{
    if (has_explained_itself(status) && !log)
        return;
    char how[64];
    as_launch_describe(status, how, sizeof(how));
    (void)as_error(
        AS_EXIT_FAILED,
        "%s ended with %s; its own message is %s%s, what was seen until then is "
        "in %s",
        script_name(program), how, log ? "in " : "above", log ? log : "", report);
}

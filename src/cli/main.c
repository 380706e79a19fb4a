// SPDX-License-Identifier: Apache-2.0
//
// actswap: rehearse, run and compare training programs.

#include "cli/error.h"
#include "cli/verbs.h"
#include "core/gpu.h"
#include "core/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
};

static const struct verb verbs[] = {
    {"rehearse", as_verb_rehearse, "train on a simulated GPU; none is needed"},
    {"run", as_verb_run, "train on this machine's GPU, watched or under a policy"},
    {"compare", as_verb_compare, "run every policy and put them side by side"},
    {"report", as_verb_report, "what a run left behind: text, JSON, or one HTML page"},
    {"help", as_verb_help, "this text; help env: settings; help policies; help gpus"},
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static void print_help(FILE *out)
{
    (void)fputs("Usage: actswap VERB [OPTION...] [--] python train.py ...\n\n", out);
    for (size_t n = 0; n < VERBS; n++)
        (void)fprintf(out, "  %-10s %s\n", verbs[n].name, verbs[n].what);
    (void)fputs("\n"
                "  actswap VERB --help   the options of a verb\n"
                "  actswap --version\n\n"
                "Try:  actswap compare --gpu h100-80gb -- python train.py\n",
                out);
}

static int print_settings(void)
{
    const size_t length = as_settings_help(NULL, 0);
    char *const text = malloc(length + 1);
    if (!text)
        return as_error(AS_EXIT_CANNOT, "out of memory");
    (void)as_settings_help(text, length + 1);
    (void)fputs(text, stdout);
    free(text);
    return 0;
}

static int print_policies(void)
{
    (void)puts("off         watch and report, change nothing\n"
               "offload     copy what forward saves to pinned host memory, free it on "
               "the device when\n"
               "            its block is left, copy it back before backward needs it\n"
               "recompute   keep only what goes into a block and run its forward again "
               "in backward\n"
               "\n"
               "Losses, gradients and parameters are the same bits under each; `actswap "
               "compare`\n"
               "shows it for your program.");
    return 0;
}

static int print_gpus(void)
{
    for (const struct as_gpu *gpu = as_gpu_table; gpu->name; gpu++) {
        (void)printf("%-16s %6.1f GiB   %s\n", gpu->name,
                     (double)gpu->total_bytes / (1U << 30), gpu->label);
    }
    return 0;
}

int as_verb_help(int argc, char **argv)
{
    static const char *const names[] = {"env", "policies", "gpus", NULL};
    static int (*const printers[])(void) = {print_settings, print_policies, print_gpus};
    if (argc < 2) {
        print_help(stdout);
        return 0;
    }
    for (size_t n = 0; names[n]; n++) {
        if (!strcmp(argv[1], names[n]))
            return printers[n]();
    }
    for (size_t n = 0; n < VERBS; n++) {
        static char help[] = "--help";
        char *arguments[] = {argv[1], help, NULL};
        if (!strcmp(argv[1], verbs[n].name) && verbs[n].run != as_verb_help)
            return verbs[n].run(2, arguments);
    }
    const char *const nearest = as_settings_nearest(argv[1], names);
    return as_error(AS_EXIT_USAGE,
                    "there is no help on %s. %s%s%s(env, policies, gpus, or a verb)",
                    argv[1], nearest ? "Did you mean " : "", nearest ? nearest : "",
                    nearest ? "? " : "");
}

static int unknown(const char *name)
{
    const char *names[VERBS + 1] = {0};
    for (size_t n = 0; n < VERBS; n++)
        names[n] = verbs[n].name;
    const char *const nearest = as_settings_nearest(name, names);
    return as_error(AS_EXIT_USAGE,
                    "%s is not a verb of actswap. %s%s%s(rehearse, run, "
                    "compare, report, help)",
                    name, nearest ? "Did you mean " : "", nearest ? nearest : "",
                    nearest ? "? " : "");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return AS_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version")) {
        (void)puts("actswap " AS_VERSION);
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return as_verb_help(1, argv);
    for (size_t n = 0; n < VERBS; n++) {
        if (!strcmp(argv[1], verbs[n].name))
            return verbs[n].run(argc - 1, argv + 1);
    }
    return unknown(argv[1]);
}

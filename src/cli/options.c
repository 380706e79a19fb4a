// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include "cli/error.h"
#include "core/settings.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_GPU = 256,
    KEY_STEPS,
    KEY_COMPUTE,
    KEY_ORDER,
    KEY_CHECK,
    KEY_ASCII,
    KEY_TEXT,
    KEY_JSON,
    KEY_HTML,
    KEY_RANK,
    KEY_TOP,
    KEY_OPEN,
    KEY_HELP
};

enum { OPTIONS_MAX = 13 };

struct verb {
    const char *name;
    const char *args_doc;
    const char *doc;
    bool mixes; // options may follow arguments: these are no program
    struct argp_option options[OPTIONS_MAX];
};

#define OPTION_GPU                                                                       \
    {                                                                                    \
        "gpu", KEY_GPU, "NAME", 0, "The simulated card (default h100-80gb)", 0           \
    }
#define OPTION_POLICY                                                                    \
    {                                                                                    \
        "policy", 'p', "POLICY", 0,                                                      \
            "off, offload or recompute (default: ACTSWAP_POLICY or off)", 0              \
    }
#define OPTION_BUDGET                                                                    \
    {                                                                                    \
        "budget", 'b', "BUDGET", 0,                                                      \
            "A size, or a percentage of the card: what the peak is held against, and "   \
            "offload keeps it below (default: ACTSWAP_BUDGET or none)",                  \
            0                                                                            \
    }
#define OPTION_DISK                                                                      \
    {                                                                                    \
        "disk", 'd', "FOLDER:SIZE", 0,                                                   \
            "Where activations go on to once pinned memory is full, under offload "      \
            "(default: ACTSWAP_DISK or none)",                                           \
            0                                                                            \
    }
#define OPTION_STEPS                                                                     \
    {                                                                                    \
        "steps", KEY_STEPS, "N", 0,                                                      \
            "End the program when the next step after so many begins (default: "         \
            "ACTSWAP_STEPS, or when it ends by itself)",                                 \
            0                                                                            \
    }
#define OPTION_COMPUTE                                                                   \
    {                                                                                    \
        "compute", KEY_COMPUTE, "HOW", 0,                                                \
            "auto (default of rehearse): memory and order are simulated, which is fast " \
            "at any model size, and integers and small tensors are computed, so that "   \
            "the program's decisions are those of the card; values (default of "         \
            "compare): every number is computed on this machine; shapes: none is",       \
            0                                                                            \
    }
#define OPTION_ORDER                                                                     \
    {                                                                                    \
        "order", KEY_ORDER, "WHEN", 0,                                                   \
            "early (default) or late: work on streams runs as soon, or as late, as the " \
            "program's own synchronisation allows; seed:N: in an order of those that "   \
            "it allows, which N stands for",                                             \
            0                                                                            \
    }
#define OPTION_CHECK                                                                     \
    {                                                                                    \
        "check", KEY_CHECK, "WHAT", 0,                                                   \
            "races: say where two streams, or a stream and the host, use the same "      \
            "memory and nothing orders them; first-race: and stop there (default off)",  \
            0                                                                            \
    }
#define OPTION_FOLDER                                                                    \
    {                                                                                    \
        "output", 'o', "DIR", 0,                                                         \
            "A new folder for the report (default: actswap-DATE-PID)", 0                 \
    }
#define OPTION_FORCE                                                                     \
    {                                                                                    \
        "force", 'f', NULL, 0, "DIR may exist; no file in it is overwritten", 0          \
    }

#define OPTION_ASCII                                                                     \
    {                                                                                    \
        "ascii", KEY_ASCII, NULL, 0, "Plain characters only", 0                          \
    }

#define OPTION_HELP                                                                      \
    {                                                                                    \
        "help", KEY_HELP, NULL, 0, "This text", -1                                       \
    }

static const struct verb verbs[] = {
    {
        .name = "rehearse",
        .args_doc = "[--] python train.py ...",
        .doc =
            "Runs a training program on a simulated GPU. Neither a GPU nor a driver is "
            "needed.\v"
            "The exit code is the program's own. 1: it never used CUDA; 2: bad option or "
            "setting; 3: --check races found some; 125: actswap could not start it; 126, "
            "127: not executable, not "
            "found.",
        .options = {OPTION_GPU,
                    OPTION_POLICY,
                    OPTION_BUDGET,
                    OPTION_DISK,
                    OPTION_STEPS,
                    OPTION_COMPUTE,
                    OPTION_ORDER,
                    OPTION_CHECK,
                    OPTION_FOLDER,
                    OPTION_FORCE,
                    OPTION_HELP,
                    {0}},
    },
    {
        .name = "run",
        .args_doc = "[--] python train.py ...",
        .doc =
            "Runs a training program on this machine's GPU, watched, and under a "
            "policy.\v"
            "Replaces itself by the program: signals, process id and exit code are the "
            "program's own. 2: bad option or setting; 125: actswap could not start it; "
            "126, 127: not executable, not found.",
        .options = {OPTION_POLICY,
                    OPTION_BUDGET,
                    OPTION_DISK,
                    OPTION_STEPS,
                    OPTION_FOLDER,
                    OPTION_FORCE,
                    OPTION_HELP,
                    {0}},
    },
    {
        .name = "compare",
        .args_doc = "[--] python train.py ...\nDIR...",
        .doc =
            "Runs a training program once for each policy and prints one table: memory, "
            "bytes moved, and whether losses and gradients agree bit for bit. Given "
            "folders of earlier runs, compares those.\v"
            "Exit code 0: losses and gradients are identical (or were not computed); "
            "1: they differ, or a policy other than off is over the budget; 2: a run "
            "failed or could not be started; 3: two runs with off differ, so that "
            "nothing "
            "can be compared.",
        .options = {{"gpu", KEY_GPU, "NAME", 0,
                     "Simulate this card (default: this machine's GPU; where there is "
                     "none h100-80gb)",
                     0},
                    {"policy", 'p', "POLICY,...", 0,
                     "What to compare (default off,offload,recompute,"
                     "recompute:boundary=offload)",
                     0},
                    OPTION_BUDGET,
                    OPTION_DISK,
                    OPTION_STEPS,
                    OPTION_COMPUTE,
                    OPTION_ORDER,
                    {"output", 'o', "DIR", 0,
                     "A new folder for logs and reports (default: actswap-DATE-PID)", 0},
                    OPTION_FORCE,
                    OPTION_ASCII,
                    OPTION_HELP,
                    {0}},
    },
    {
        .name = "report",
        .args_doc = "DIR|FILE...",
        .doc =
            "Reads what runs left behind: a folder, or single files. The ranks of a run "
            "are put together, and the one with the highest peak is told in full.\v"
            "--html - writes the page to standard output. Without an option a text is "
            "printed. Exit code 0; 1: a file cannot be read or is of a newer schema; "
            "2: bad option.",
        .mixes = true,
        .options = {{"text", KEY_TEXT, NULL, 0, "A text for the terminal (default)", 0},
                    {"json", KEY_JSON, NULL, 0, "All of it as one JSON object", 0},
                    {"html", KEY_HTML, "FILE", 0,
                     "A page of one file, without network; FILE is overwritten", 0},
                    {"open", KEY_OPEN, NULL, 0, "Also open the page in a browser", 0},
                    {"rank", KEY_RANK, "N", 0,
                     "Tell this rank in full (default: the highest peak)", 0},
                    {"top", KEY_TOP, "N", 0,
                     "So many sites at most (default: 8 in the text, all in the page)",
                     0},
                    OPTION_ASCII,
                    OPTION_HELP,
                    {0}},
    },
};

// Where an option's text goes; NULL: it is no text.
static const char **text_of(struct as_options *options, int key)
{
    switch (key) {
    case KEY_GPU:
        return &options->gpu;
    case 'p':
        return &options->policy;
    case 'b':
        return &options->budget;
    case 'd':
        return &options->disk;
    case KEY_STEPS:
        return &options->steps;
    case KEY_COMPUTE:
        return &options->compute;
    case KEY_ORDER:
        return &options->order;
    case KEY_CHECK:
        return &options->check;
    case 'o':
        return &options->folder;
    case KEY_HTML:
        return &options->html;
    case KEY_RANK:
        return &options->rank;
    case KEY_TOP:
        return &options->top;
    default:
        return NULL;
    }
}

// NOLINTNEXTLINE(readability-non-const-parameter): argp gives the type
static error_t take(int key, char *arg, struct argp_state *state)
{
    struct as_options *const options = state->input;
    const int understood = options->understood;
    const char **const text = text_of(options, key);
    options->understood = state->next;
    if (text) {
        *text = arg;
        return 0;
    }
    switch (key) {
    case 'f':
        options->force = true;
        return 0;
    case KEY_HELP:
        options->help = true;
        return 0;
    case KEY_ASCII:
        options->ascii = true;
        return 0;
    case KEY_TEXT:
        options->text = true;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_OPEN:
        options->open = true;
        return 0;
    case ARGP_KEY_ARG: // the program; all that follows is its own
        options->program = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    default:
        options->understood = understood;
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct verb *find_verb(const char *name)
{
    for (size_t n = 0; n < sizeof(verbs) / sizeof(verbs[0]); n++) {
        if (!strcmp(verbs[n].name, name))
            return &verbs[n];
    }
    return NULL;
}

// argp would print two lines and no nearest name.
static int explain(const struct verb *verb, const char *given)
{
    const char *names[OPTIONS_MAX + 1] = {0};
    size_t count = 0;
    for (const struct argp_option *o = verb->options; o->name; o++)
        names[count++] = o->name;

    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(given, "="), given);
    const bool is_long = !strncmp(name, "--", 2);
    for (const struct argp_option *o = verb->options; o->name; o++) {
        const bool is_this = is_long ? !strcmp(name + 2, o->name) : name[1] == o->key;
        if (is_this && o->arg)
            return as_error(AS_EXIT_USAGE, "%s needs a value: %s %s", name, name, o->arg);
        if (is_this)
            return as_error(AS_EXIT_USAGE, "%s takes no value: %s", name, given);
    }
    const char *nearest = is_long ? as_settings_nearest(name + 2, names) : NULL;
    return as_error(AS_EXIT_USAGE,
                    "%s is not an option of actswap %s. %s%s%s(all: actswap %s --help)",
                    name, verb->name, nearest ? "Did you mean --" : "",
                    nearest ? nearest : "", nearest ? "? " : "", verb->name);
}

int as_options_parse(struct as_options *options, const char *verb_name, int argc,
                     char **argv)
{
    static char *nothing[] = {NULL};
    const struct verb *const verb = find_verb(verb_name);

    *options =
        (struct as_options){.verb = verb->name, .program = nothing, .understood = 1};
    const struct argp argp = {.options = verb->options,
                              .parser = take,
                              .args_doc = verb->args_doc,
                              .doc = verb->doc};
    char name[64];
    (void)snprintf(name, sizeof(name), "actswap %s", verb->name);
    argv[0] = name; // argp shows it in the usage line

    // Errors are silent there and explained here; argp's own --help would be silent too.
    const unsigned order = verb->mixes ? 0 : ARGP_IN_ORDER;
    if (argp_parse(&argp, argc, argv, order | ARGP_NO_ERRS | ARGP_NO_HELP, NULL,
                   options)) {
        int bad = options->understood;
        while (verb->mixes && bad < argc - 1 && *argv[bad] != '-')
            bad++;
        return explain(verb, argv[bad]);
    }
    if (options->help) {
        argp_help(&argp, stdout, ARGP_HELP_STD_HELP, name);
        exit(0);
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_SETTINGS_H
#define AS_CORE_SETTINGS_H

// All ACTSWAP_ settings. One table (settings.c) makes the parser, `actswap help env`, the
// nearest-name suggestion and the README section.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum as_policy { AS_POLICY_OFF, AS_POLICY_OFFLOAD, AS_POLICY_RECOMPUTE };

// As users write it.
const char *as_policy_name(enum as_policy policy);

struct as_settings {
    enum as_policy policy;
    bool policy_chosen; // by the user, who may have chosen off
    unsigned offload_keep_last; // offload:keep_last=, blocks
    uint64_t offload_min_bytes; // offload:min=
    bool offload_boundary; // offload:only=boundary
    bool recompute_sqrt; // recompute:segments=sqrt
    bool recompute_boundary; // recompute:boundary=offload
    bool native_stacks; // ACTSWAP_STACKS is one of those that have native frames
    unsigned recompute_every; // recompute:every=, blocks run again together; 0: one
    unsigned recompute_segments; // recompute:segments=, how many; 0: by the above
    unsigned budget_percent; // of the card
    uint64_t budget_bytes; // 0: none, or budget_percent
    uint64_t memory_bytes; // that a card is to have, 0: its own
    uint64_t host_memory_bytes; // 0: the default share
    char recompute_blocks[128]; // recompute:blocks=, a pattern; "": all
    unsigned host_memory_percent;
    unsigned sim_gpus;
    const char *disk; // the folder, disk_folder_bytes long, and more; NULL: none
    size_t disk_folder_bytes;
    uint64_t disk_bytes;
    const char *report; // path template, NULL: off
    const char *log_file; // path template or NULL
    const char *ranks; // "all" or a list
    const char *stacks; // "python", "native", "all" or "none"
    const char *skip; // program names
    const char *run_id; // or NULL
    uint64_t steps; // after which the program is to end, 0: when it does
    int log_level; // enum as_log_level, -1: by rank
    bool strict;
    bool cupti; // ACTSWAP_CUPTI: have the device say how long its work takes
    bool digest; // ACTSWAP_DIGEST: hash gradients at each step
    const char *sim_gpu; // as given; rehearse only
    const char *sim_order;
    const char *sim_compute;
    const char *sim_check;
    const char *sim_fault;
};

// Reads every ACTSWAP_ name of `environment` (as environ). Returns 0, or -EINVAL with
// one line in `message` that names the setting, the value and the nearest valid one.
// The strings point into the environment's.
int as_settings_read(struct as_settings *settings, char *const environment[],
                     char *message, size_t message_bytes);

// Back to the defaults, policy off: what ACTSWAP_STRICT=0 makes of a mistake.
void as_settings_switch_off(struct as_settings *settings);

// Writes the help text (one paragraph a setting) into `text`, always terminated;
// returns its length as snprintf would.
size_t as_settings_help(char *text, size_t text_bytes);

// Fills in a path template: %p pid, %h host, %r rank, %i run id, %e program, %t start
// time, %q{VAR}, %%. 0, -ENAMETOOLONG or -EINVAL for an unknown letter.
int as_settings_path(const struct as_settings *settings, const char *template, char *path,
                     size_t path_bytes);

// "512MiB", "48GB", bytes. 0 or -EINVAL / -ERANGE.
int as_settings_bytes(const char *text, uint64_t *bytes);

// The number of "seed:N". false: it is no such text.
bool as_settings_seed(const char *text, uint64_t *seed);

// The nearest of `names` (NULL-terminated) to `name` by edit distance, or NULL when none
// is near enough to be meant.
const char *as_settings_nearest(const char *name, const char *const names[]);

#endif

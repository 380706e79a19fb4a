// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_PATH_H
#define AS_CORE_PATH_H

// Names of files and of this process, from the environment of a launcher.
//
// Thread-safety: every function may be called from any thread, while none changes the
// environment.

#include <stddef.h>

struct as_settings;

// RANK or SLURM's, else 0; WORLD_SIZE or SLURM's, else 1.
int as_path_rank(void);
int as_path_world(void);

// How many ranks share this machine: LOCAL_WORLD_SIZE or SLURM's, else 1.
int as_path_local_world(void);

// What the ranks of one launch have in common: ACTSWAP_RUN_ID, SLURM's job and step,
// TORCHELASTIC_RUN_ID, the launcher's process if there is a rank, else our own process.
// Characters that do not belong in a file name become '_'.
void as_path_run_id(const struct as_settings *settings, char *id, size_t id_bytes);

// What this process runs, for people: "train.py" rather than "python".
void as_path_program(char *name, size_t name_bytes);

// Makes the folders that lead to the file. 0 or a negative errno.
int as_path_make_folders(const char *path);

// Gives the finished file `made` a name that did not exist: "rank0.json", else
// "rank0.2.json" and so on; at no moment is there half a file of that name. `path` is
// changed to it. 0 or a negative errno, and `made` is still there.
int as_path_place(const char *made, char *path, size_t path_bytes);

#endif

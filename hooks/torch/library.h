// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TORCH_LIBRARY_H
#define AS_TORCH_LIBRARY_H

// The library that is preloaded into this process, by name: the adapter is linked with
// nothing and never loads a copy.
//
// Thread-safety: bind once, under the GIL; read only afterwards.

#include <actswap/actswap.h>

struct as_library {
    int (*abi_version)(void);
    const char *(*version)(void);
    const char *(*category_name)(enum actswap_category category);
    int (*attach)(const struct actswap_verbs *verbs, void *context);
    void (*detach)(void);
    int (*save)(const struct actswap_saved *saved, struct actswap_page **page);
    int (*need)(struct actswap_page *page, void *stream, struct actswap_resident *out);
    void (*used)(int device, const void *address);
    uint32_t (*stack)(const char *frames);
    void (*drop)(struct actswap_page *page);
    int (*block)(enum actswap_edge edge, uint64_t block, void *stream);
    void (*part)(enum actswap_edge edge, uint64_t part);
    void (*block_name)(uint64_t block, const char *name);
    int (*mark)(enum actswap_moment moment);
    int (*enough)(void);
    int (*values)(void);
    void (*tried)(uint64_t block, const struct actswap_trial *trial);
    void (*skipped)(uint64_t block, enum actswap_fault fault);
    void (*renewed)(uint64_t block);
    int (*tag)(int device, const void *address, enum actswap_category category);
    int (*suggest)(int device, const void *address, enum actswap_category category);
    int (*held)(int device, const void *address);
    void (*looked)(void);
    void (*expect)(enum actswap_category category, uint64_t bytes);
    uint64_t (*unnamed)(enum actswap_moment moment);
    int (*root)(int device, const void *address, size_t bytes, void *stream);
    int (*gradient)(int device, const void *address, size_t bytes, void *stream);
    void (*note)(const char *what);
    int (*stats)(struct actswap_stats *stats);
};

// Returns 0; -ENOENT when no library, or one without all of the entries, is in the
// process; -EPROTO when it speaks another version of the interface.
int as_library_bind(struct as_library *library);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define ENTRY(name)                                                                      \
    {                                                                                    \
        "actswap_" #name, offsetof(struct as_library, name)                              \
    }

static const struct {
    const char *symbol;
    size_t offset;
} entries[] = {
    ENTRY(abi_version), ENTRY(version),  ENTRY(category_name), ENTRY(attach),
    ENTRY(detach),      ENTRY(save),     ENTRY(need),          ENTRY(used),
    ENTRY(stack),       ENTRY(drop),     ENTRY(block),         ENTRY(part),
    ENTRY(block_name),  ENTRY(mark),     ENTRY(tag),           ENTRY(suggest),
    ENTRY(held),        ENTRY(looked),   ENTRY(expect),        ENTRY(unnamed),
    ENTRY(root),        ENTRY(gradient), ENTRY(note),          ENTRY(stats),
    ENTRY(enough),      ENTRY(values),   ENTRY(tried),         ENTRY(skipped),
    ENTRY(renewed),
};

int as_library_bind(struct as_library *library)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *address = dlsym(RTLD_DEFAULT, entries[i].symbol);
        if (!address)
            return -ENOENT;
        memcpy((char *)library + entries[i].offset, &address, sizeof(address));
    }
    return library->abi_version() == ACTSWAP_ABI_VERSION ? 0 : -EPROTO;
}

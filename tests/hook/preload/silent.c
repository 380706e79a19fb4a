// SPDX-License-Identifier: Apache-2.0
//
// A framework that cuts one cudaMalloc into tensors and tells nobody: what it saves must
// not be taken for what was allocated.
#include <stdio.h>

#include <cuda_runtime_api.h>

#include <actswap/actswap.h>

static void *allocate(void *context, int device, size_t bytes, void *stream,
                      void **address)
{
    (void)context;
    (void)device;
    (void)bytes;
    (void)stream;
    (void)address;
    return NULL;
}

static void release(void *context, void *ref)
{
    (void)context;
    (void)ref;
}

int main(void)
{
    static const struct actswap_verbs verbs = {
        .size = sizeof(verbs),
        .allocate = allocate,
        .release = release,
        .framework = "silent 1",
    };
    struct actswap_page *page;
    void *memory = NULL;

    printf("attach %d\n", actswap_attach(&verbs, NULL));
    printf("attach again %d\n", actswap_attach(&verbs, NULL));
    if (cudaMalloc(&memory, 1 << 20))
        return 1;
    struct actswap_saved saved = {
        .size = sizeof(saved),
        .address = memory,
        .bytes = 1 << 20,
        .used_bytes = 1 << 20,
        .ref = &memory,
    };
    actswap_mark(ACTSWAP_FORWARD);
    printf("all of it: %s\n",
           actswap_reason_name((enum actswap_reason)actswap_save(&saved, &page)));
    saved.address = (char *)memory + 4096;
    saved.bytes = saved.used_bytes = 4096;
    printf("a part: %s\n",
           actswap_reason_name((enum actswap_reason)actswap_save(&saved, &page)));
    actswap_detach();
    return 0;
}

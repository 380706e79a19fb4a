// SPDX-License-Identifier: Apache-2.0
#include "track/gradients.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda/runtime.h"
#include "cuda/thread.h"
#include "track/digest.h"

enum { STAGING_BYTES = 4 << 20 };

struct as_gradients {
    atomic_flag busy; // a lock that nobody waits for, since CUDA calls are made under it
    void *staging;
    bool any;
    struct as_digest digest;
};

struct as_gradients *as_gradients_create(void)
{
    struct as_gradients *gradients = calloc(1, sizeof(*gradients));
    if (!gradients)
        return NULL;

    atomic_flag_clear(&gradients->busy);
    as_digest_start(&gradients->digest);
    return gradients;
}

void as_gradients_destroy(struct as_gradients *gradients)
{
    if (!gradients)
        return;
    if (gradients->staging)
        as_cuda_host_free(gradients->staging);
    free(gradients);
}

static int add_piece(struct as_gradients *gradients, const void *address, size_t bytes,
                     void *stream)
{
    if (as_cuda_copy_out(gradients->staging, address, bytes, stream) ||
        as_cuda_stream_synchronize(stream))
        return -EIO;
    as_digest_add(&gradients->digest, gradients->staging, bytes);
    return 0;
}

static int add_all(struct as_gradients *gradients, const char *address, size_t bytes,
                   void *stream)
{
    if (as_stream_captured(stream))
        return -EBUSY;
    if (!gradients->staging && as_cuda_host_alloc(&gradients->staging, STAGING_BYTES))
        return -EIO;
    gradients->any = true;
    while (bytes) {
        const size_t piece = bytes < STAGING_BYTES ? bytes : STAGING_BYTES;
        const int err = add_piece(gradients, address, piece, stream);

        if (err)
            return err;
        address += piece;
        bytes -= piece;
    }
    return 0;
}

int as_gradients_add(struct as_gradients *gradients, const void *address, size_t bytes,
                     void *stream)
{
    struct as_before before;

    if (atomic_flag_test_and_set(&gradients->busy))
        return -EBUSY;
    as_guard_enter(&before);
    const int err = add_all(gradients, address, bytes, stream);
    as_guard_leave(&before);
    atomic_flag_clear(&gradients->busy);
    return err;
}

bool as_gradients_take(struct as_gradients *gradients, uint64_t *digest)
{
    if (atomic_flag_test_and_set(&gradients->busy))
        return false;
    const bool any = gradients->any;
    if (any) {
        *digest = as_digest_value(&gradients->digest);
        as_digest_start(&gradients->digest);
        gradients->any = false;
    }
    atomic_flag_clear(&gradients->busy);
    return any;
}

// SPDX-License-Identifier: Apache-2.0
#include "pager/pause.h"

#include <stddef.h>

#include "pager/state.h"

static bool can_pause(const struct actswap_verbs *verbs)
{
    return verbs &&
           verbs->size >=
               offsetof(struct actswap_verbs, resume) + sizeof(verbs->resume) &&
           verbs->pause && verbs->resume;
}

struct as_pause as_pause_begin(struct as_pager *pager)
{
    pthread_mutex_lock(&pager->lock);
    struct as_pause pause = {.verbs = pager->verbs, .context = pager->context};
    pthread_mutex_unlock(&pager->lock);
    if (can_pause(pause.verbs))
        pause.paused = pause.verbs->pause(pause.context);
    else
        pause.verbs = NULL;
    return pause;
}

void as_pause_end(const struct as_pause *pause)
{
    if (pause->verbs)
        pause->verbs->resume(pause->context, pause->paused);
}

// SPDX-License-Identifier: Apache-2.0
#include "pager/frame.h"

#include <errno.h>
#include <stdlib.h>

static _Thread_local struct as_frame *innermost;

int as_frame_push(const struct as_pager *pager, uint64_t block,
                  enum actswap_verdict verdict)
{
    struct as_frame *frame = calloc(1, sizeof(*frame));
    if (!frame)
        return -ENOMEM;
    frame->pager = pager;
    frame->block = block;
    frame->verdict = verdict;
    frame->outer = innermost;
    innermost = frame;
    return 0;
}

static struct as_frame *next_of(const struct as_pager *pager, struct as_frame *frame)
{
    while (frame && frame->pager != pager)
        frame = frame->outer;
    return frame;
}

struct as_frame *as_frame_innermost(const struct as_pager *pager)
{
    return next_of(pager, innermost);
}

struct as_frame *as_frame_outermost(const struct as_pager *pager)
{
    struct as_frame *found = NULL, *frame = next_of(pager, innermost);
    for (; frame; frame = next_of(pager, frame->outer))
        found = frame;
    return found;
}

bool as_frame_inside(const struct as_pager *pager, uint64_t block)
{
    struct as_frame *frame = next_of(pager, innermost);
    while (frame && frame->block != block)
        frame = next_of(pager, frame->outer);
    return frame;
}

struct as_frame *as_frame_pop(const struct as_pager *pager)
{
    struct as_frame **place = &innermost;
    while (*place && (*place)->pager != pager)
        place = &(*place)->outer;
    struct as_frame *frame = *place;
    if (frame)
        *place = frame->outer;
    return frame;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_JOBS_H
#define AS_PAGER_JOBS_H

// Pages on their way between host memory and the disk, and the threads that take them
// there. The threads begin with the first job, call no verb, and mind no signal.
//
// A page that ends while its job runs leaves it behind, with the buffer: the job gives that
// back when it is over. One that is only queued is cancelled.
//
// Thread-safety: all but create and destroy want the pager's lock, and keep it but for
// as_jobs_wait().

#include <stdbool.h>
#include <stdint.h>

#include "pager/disk.h"
#include "pager/slab.h"

struct actswap_page;
struct as_jobs;
struct as_pager;

// NULL: out of memory.
struct as_jobs *as_jobs_create(struct as_pager *pager);

// Waits for what runs. The lock is not held.
void as_jobs_destroy(struct as_jobs *jobs);

// Queues the page's bytes to be written from its buffer, or to be read into one, which
// becomes the job's. -ENOMEM: also when there is no thread.
int as_jobs_write(struct as_jobs *jobs, struct actswap_page *page);
int as_jobs_read(struct as_jobs *jobs, struct actswap_page *page,
                 const struct as_buffer *buffer);

// The page is over. True: the job is gone, and `buffer` is the page's own, or what it was
// to be read into. False: the job has taken `buffer` and ends by itself.
bool as_jobs_leave(struct as_jobs *jobs, struct actswap_page *page,
                   struct as_buffer *buffer);

// Ends a read that has not begun, and hands its buffer over. False: it has begun.
bool as_jobs_cancel_read(struct as_jobs *jobs, struct actswap_page *page,
                         struct as_buffer *buffer);

// How many reads are queued or run.
unsigned as_jobs_reading(const struct as_jobs *jobs);

// Waits until a job is over. False: none was, in as long as the disk is waited for.
bool as_jobs_wait(struct as_jobs *jobs);

// For tests: how long that is.
void as_jobs_set_patience(struct as_jobs *jobs, unsigned milliseconds);

// Reads on the calling thread; the lock is not held. As as_disk_read().
int as_jobs_read_now(struct as_pager *pager, struct actswap_page *page,
                     const struct as_buffer *buffer);

#endif

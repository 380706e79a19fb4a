// SPDX-License-Identifier: Apache-2.0
#include "pager/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "cuda/runtime.h"
#include "cuda/thread.h"
#include "pager/lane.h"
#include "pager/pause.h"
#include "pager/state.h"

// Two keep a disk busy while the others compute checksums.
enum { THREADS = 4, PATIENCE_MS = 30000 };

struct as_job {
    struct as_job *next;
    struct actswap_page *page; // NULL: it ended
    bool out, running, hollow;
    int device;
    void *copied; // what a write waits for
    struct as_buffer buffer; // a read's, or what an ended page left
    const void *host; // of a write
    struct as_extent extent;
};

struct queue {
    struct as_job *first, *last;
};

struct as_jobs {
    struct as_pager *pager;
    pthread_cond_t wanted, done;
    pthread_t threads[THREADS];
    unsigned thread_count;
    bool ending;
    struct queue reads, writes; // not begun
    unsigned reading, writing; // begun or not
    uint64_t finished;
    unsigned patience_ms;
};

struct as_jobs *as_jobs_create(struct as_pager *pager)
{
    struct as_jobs *jobs = calloc(1, sizeof(*jobs));
    if (!jobs)
        return NULL;
    jobs->pager = pager;
    jobs->patience_ms = PATIENCE_MS;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->wanted, NULL);
    pthread_cond_init(&jobs->done, &steady);
    pthread_condattr_destroy(&steady);
    return jobs;
}

void as_jobs_set_patience(struct as_jobs *jobs, unsigned milliseconds)
{
    jobs->patience_ms = milliseconds;
}

// --- Queues

static void push(struct queue *queue, struct as_job *job)
{
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
}

static struct as_job *pop(struct queue *queue)
{
    struct as_job *job = queue->first;
    if (job)
        queue->first = job->next;
    if (!queue->first)
        queue->last = NULL;
    return job;
}

static void cut(struct queue *queue, struct as_job *job)
{
    struct as_job *last = NULL, **place = &queue->first;
    for (; *place != job; place = &(*place)->next)
        last = *place;
    *place = job->next;
    if (queue->last == job)
        queue->last = last;
}

// --- What a job does. The lock is not held.

// This thread's alone, so that nothing is put back after it.
static int wait_on_host(int device, void *event)
{
    if (!event)
        return 0;
    int mode = AS_CUDA_RELAXED;
    int err = as_cuda_capture_mode(&mode);
    if (!err)
        err = as_cuda_device_set(device);
    return (err || as_cuda_event_synchronize(event)) ? -EIO : 0;
}

static int write_out(struct as_jobs *jobs, struct as_job *job)
{
    struct as_disk *disk = jobs->pager->disk;
    int err = as_disk_take(disk, job->extent.bytes, job->hollow, &job->extent);
    if (err)
        return err;
    err = wait_on_host(job->device, job->copied);
    if (!err && job->hollow)
        as_disk_count(disk, job->extent.bytes, true);
    else if (!err)
        err = as_disk_write(disk, &job->extent, job->host);
    if (err)
        as_disk_give(disk, &job->extent);
    return err;
}

// What the buffer was used for last may still be on its way from it.
static int read_in(struct as_jobs *jobs, struct as_job *job)
{
    struct as_disk *disk = jobs->pager->disk;
    const int err = wait_on_host(job->buffer.device, job->buffer.event);
    if (err)
        return err;
    if (!job->hollow)
        return as_disk_read(disk, &job->extent, job->buffer.host);
    as_disk_count(disk, job->extent.bytes, false);
    return 0;
}

// --- What becomes of it. The lock is held.

static void finish_write(struct as_jobs *jobs, struct as_job *job, int err)
{
    struct as_pager *pager = jobs->pager;
    struct actswap_page *page = job->page;
    if (page && !err) {
        page->extent = job->extent;
        page->on_disk = true;
    } else if (page) {
        page->unwritten = true;
    } else {
        if (!err)
            as_disk_give(pager->disk, &job->extent);
        as_slab_give(pager->slab, &job->buffer);
    }
}

static void finish_read(struct as_jobs *jobs, struct as_job *job, int err)
{
    struct as_pager *pager = jobs->pager;
    struct actswap_page *page = job->page;
    if (!page || err) {
        as_slab_give(pager->slab, &job->buffer);
        if (page)
            page->unread = true;
        else
            as_disk_give(pager->disk, &job->extent);
        return;
    }
    page->buffer = job->buffer;
    as_page_unlink(page, AS_PAGE_TIER);
    as_page_prepend(&pager->hosted, page);
}

// Also one that was cancelled: a thread may wait for the buffer it was to make free.
static void announce_end(struct as_jobs *jobs, struct as_job *job)
{
    jobs->finished++;
    pthread_cond_broadcast(&jobs->done);
    free(job);
}

static void finish(struct as_jobs *jobs, struct as_job *job, int err)
{
    if (job->page)
        job->page->job = NULL;
    if (job->out) {
        jobs->writing--;
        finish_write(jobs, job, err);
    } else {
        jobs->reading--;
        finish_read(jobs, job, err);
    }
    announce_end(jobs, job);
}

// Reads first: somebody is waiting for them, or will be soon.
static struct as_job *next_job(struct as_jobs *jobs)
{
    struct as_job *job = pop(&jobs->reads);
    return job ? job : pop(&jobs->writes);
}

static void *work(void *context)
{
    struct as_jobs *jobs = context;
    pthread_mutex_t *lock = &jobs->pager->lock;
    pthread_mutex_lock(lock);
    while (!jobs->ending) {
        struct as_job *job = next_job(jobs);
        if (!job) {
            pthread_cond_wait(&jobs->wanted, lock);
            continue;
        }
        job->running = true;
        pthread_mutex_unlock(lock);
        const int err = job->out ? write_out(jobs, job) : read_in(jobs, job);
        pthread_mutex_lock(lock);
        finish(jobs, job, err);
    }
    pthread_mutex_unlock(lock);
    return NULL;
}

// The process's signals are for its own threads; one of a file's size limit is an error
// of the write.
static bool start_thread(struct as_jobs *jobs)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    const int err = pthread_create(&jobs->threads[jobs->thread_count], NULL, work, jobs);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    jobs->thread_count += !err;
    return !err;
}

static struct as_job *start(struct as_jobs *jobs, struct actswap_page *page)
{
    const unsigned under_way = jobs->reading + jobs->writing;
    if (jobs->thread_count < THREADS && under_way >= jobs->thread_count &&
        !start_thread(jobs) && !jobs->thread_count)
        return NULL;
    struct as_job *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->page = page;
    job->hollow = page->hollow;
    job->device = page->lane->device;
    page->job = job;
    pthread_cond_signal(&jobs->wanted);
    return job;
}

int as_jobs_write(struct as_jobs *jobs, struct actswap_page *page)
{
    struct as_job *job = start(jobs, page);
    if (!job)
        return -ENOMEM;
    job->out = true;
    job->copied = page->copied;
    job->host = page->buffer.host;
    job->extent.bytes = page->bytes;
    push(&jobs->writes, job);
    jobs->writing++;
    return 0;
}

int as_jobs_read(struct as_jobs *jobs, struct actswap_page *page,
                 const struct as_buffer *buffer)
{
    struct as_job *job = start(jobs, page);
    if (!job)
        return -ENOMEM;
    job->extent = page->extent;
    job->buffer = *buffer;
    push(&jobs->reads, job);
    jobs->reading++;
    return 0;
}

static void cancel(struct as_jobs *jobs, struct as_job *job)
{
    cut(job->out ? &jobs->writes : &jobs->reads, job);
    *(job->out ? &jobs->writing : &jobs->reading) -= 1;
    announce_end(jobs, job);
}

bool as_jobs_cancel_read(struct as_jobs *jobs, struct actswap_page *page,
                         struct as_buffer *buffer)
{
    struct as_job *job = page->job;
    if (job->out || job->running)
        return false;
    *buffer = job->buffer;
    page->job = NULL;
    cancel(jobs, job);
    return true;
}

bool as_jobs_leave(struct as_jobs *jobs, struct actswap_page *page,
                   struct as_buffer *buffer)
{
    struct as_job *job = page->job;
    if (as_jobs_cancel_read(jobs, page, buffer))
        return true;
    page->job = NULL;
    if (!job->running) {
        cancel(jobs, job);
        return true;
    }
    job->page = NULL;
    if (job->out)
        job->buffer = *buffer;
    else
        page->on_disk = false; // the job gives the extent back
    return false;
}

unsigned as_jobs_reading(const struct as_jobs *jobs)
{
    return jobs->reading;
}

bool as_jobs_wait(struct as_jobs *jobs)
{
    struct timespec until;
    const uint64_t seen = jobs->finished;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += jobs->patience_ms / 1000;
    until.tv_nsec += (long)(jobs->patience_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int err = 0;
    while (jobs->finished == seen && !err)
        err = pthread_cond_timedwait(&jobs->done, &jobs->pager->lock, &until);
    return jobs->finished != seen;
}

int as_jobs_read_now(struct as_pager *pager, struct actswap_page *page,
                     const struct as_buffer *buffer)
{
    if (page->hollow) {
        as_disk_count(pager->disk, page->bytes, false);
        return 0;
    }
    struct as_before before;
    const struct as_pause pause = as_pause_begin(pager);
    as_guard_enter(&before);
    int err = buffer->event ? as_cuda_event_synchronize(buffer->event) : 0;
    as_guard_leave(&before);
    err = err ? -EIO : as_disk_read(pager->disk, &page->extent, buffer->host);
    as_pause_end(&pause);
    return err;
}

void as_jobs_destroy(struct as_jobs *jobs)
{
    if (!jobs)
        return;
    pthread_mutex_lock(&jobs->pager->lock);
    jobs->ending = true;
    pthread_cond_broadcast(&jobs->wanted);
    pthread_mutex_unlock(&jobs->pager->lock);
    for (unsigned i = 0; i < jobs->thread_count; i++)
        pthread_join(jobs->threads[i], NULL);
    pthread_cond_destroy(&jobs->wanted);
    pthread_cond_destroy(&jobs->done);
    free(jobs);
}

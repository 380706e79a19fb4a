// SPDX-License-Identifier: Apache-2.0
#include "track/notes.h"

#include <string.h>

uint64_t as_notes_add(struct as_notes *notes, const char *what)
{
    size_t i = 0;

    pthread_mutex_lock(&notes->lock);
    while (i < AS_NOTES - 1 && notes->entries[i].what &&
           strcmp(notes->entries[i].what, what) != 0)
        i++;
    struct as_note *entry = &notes->entries[i];
    if (!entry->what)
        entry->what = i < AS_NOTES - 1 ? what : "other notes";
    const uint64_t count = ++entry->count;
    pthread_mutex_unlock(&notes->lock);
    return count;
}

struct as_note as_notes_read(struct as_notes *notes, size_t index)
{
    struct as_note entry = {NULL, 0};

    pthread_mutex_lock(&notes->lock);
    if (index < AS_NOTES)
        entry = notes->entries[index];
    pthread_mutex_unlock(&notes->lock);
    return entry;
}

// SPDX-License-Identifier: Apache-2.0
//
// A path template, and a size, as a user may write them.
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

// What fits in `room` is what would fit in more.
static void fill_in(const char *template, size_t room)
{
    static const struct as_settings settings = {.report = "x"};
    char whole[PATH_MAX], *part = malloc(room);
    const int err = as_settings_path(&settings, template, whole, sizeof(whole));
    const int err_part = as_settings_path(&settings, template, part, room);

    if (!err)
        assert(strlen(whole) < sizeof(whole));
    if (!err_part) {
        assert(strlen(part) < room);
        assert(!err && strcmp(part, whole) == 0);
    }
    free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    uint64_t value = 77;

    memcpy(text, data, bytes);
    text[bytes] = '\0';
    fill_in(text, 1 + bytes / 2);
    fill_in(text, 64);
    if (as_settings_bytes(text, &value))
        assert(value == 77);
    free(text);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// Lines as an environment: settings, their values, and the paths that they make. A mistake
// has to be said in one line, never met by chance.
#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"

enum { LINES = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void read_paths(const struct as_settings *settings)
{
    const char *const templates[] = {settings->report, settings->log_file};
    char path[PATH_MAX], small[8];

    for (size_t i = 0; i < sizeof(templates) / sizeof(*templates); i++) {
        if (!templates[i])
            continue;
        const int err = as_settings_path(settings, templates[i], path, sizeof(path));
        assert(err || memchr(path, '\0', sizeof(path)));
        assert(as_settings_path(settings, templates[i], small, sizeof(small)) || !err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *environment[LINES + 1] = {NULL};
    char *text = malloc(bytes + 1), message[512], *rest = text;
    struct as_settings settings;
    size_t count = 0;

    memcpy(text, data, bytes);
    text[bytes] = '\0';
    for (char *line; count < LINES && (line = strsep(&rest, "\n"));)
        environment[count++] = line;
    memset(message, 1, sizeof(message));
    const int err = as_settings_read(&settings, environment, message, sizeof(message));
    if (err) {
        assert(memchr(message, '\0', sizeof(message)) && *message);
        assert(!strchr(message, '\n'));
        as_settings_switch_off(&settings);
    } else {
        read_paths(&settings);
    }
    free(text);
    return 0;
}

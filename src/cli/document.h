// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_DOCUMENT_H
#define AS_CLI_DOCUMENT_H

// Opening a report file of schema actswap.report/1.

#include <jansson.h>

#define AS_DOCUMENT_SCHEMA "actswap.report/1"

// The caller owns what is returned. NULL after one line on stderr that names the file, the
// place and a way out: not readable, cut off, not a report, or of a newer schema.
json_t *as_document_read(const char *path);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CLI_REPORT_AXIS_H
#define AS_CLI_REPORT_AXIS_H

// The frame of a picture: where a value lies, and round numbers beside it.

#include <stdint.h>
#include <stdio.h>

struct as_frame {
    double width, height; // of the picture
    double left, right, top, bottom; // of what is drawn in it
    double begin, end; // values at left and right
    double most; // value at the top; 0 at the bottom
};

double as_frame_x(const struct as_frame *frame, double value);
double as_frame_y(const struct as_frame *frame, double value);

// Opens the picture; `label` tells it to those who cannot see it.
void as_frame_open(const struct as_frame *frame, FILE *out, const char *label);

// Horizontal lines at round amounts of bytes, with their text.
void as_frame_bytes(const struct as_frame *frame, FILE *out);

// Times below the picture, counted from `begin`.
void as_frame_times(const struct as_frame *frame, FILE *out);

#endif

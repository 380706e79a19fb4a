// SPDX-License-Identifier: Apache-2.0
#include "cli/report/axis.h"

#include "cli/report/html.h"
#include "cli/report/words.h"

#include <math.h>
#include <string.h>

enum { LINES = 7 };

double as_frame_x(const struct as_frame *frame, double value)
{
    const double span = frame->end > frame->begin ? frame->end - frame->begin : 1;
    return frame->left + (value - frame->begin) / span * (frame->right - frame->left);
}

double as_frame_y(const struct as_frame *frame, double value)
{
    const double most = frame->most > 0 ? frame->most : 1;
    return frame->bottom - value / most * (frame->bottom - frame->top);
}

void as_frame_open(const struct as_frame *frame, FILE *out, const char *label)
{
    as_html(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n",
            frame->width, frame->height, label);
}

// The smallest power of two, or 1, 2 or 5 times a power of ten, that is no less.
static double round_up(double value, double base)
{
    if (base > 2)
        for (double power = 1;; power *= 10)
            for (int n = 0; n < 3; n++) {
                static const double steps[] = {1, 2, 5};
                if (steps[n] * power >= value)
                    return steps[n] * power;
            }
    double power = 1;
    while (power < value)
        power *= 2;
    return power;
}

void as_frame_bytes(const struct as_frame *frame, FILE *out)
{
    const double each = round_up(frame->most / LINES, 2);
    for (int n = 0; n * each <= frame->most; n++) {
        const double bytes = n * each;
        as_words amount;
        const double y = as_frame_y(frame, bytes);
        (void)as_words_bytes((uint64_t)bytes, amount);
        char *const fraction = strstr(amount, ".0 ");
        if (fraction)
            (void)memmove(fraction, fraction + 2, strlen(fraction + 2) + 1);
        as_html(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", frame->left, y,
                frame->right);
        as_html(out,
                "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">%s</text>\n",
                frame->left - 8, y + 4, bytes > 0 ? amount : "0");
    }
}

void as_frame_times(const struct as_frame *frame, FILE *out)
{
    const double span = frame->end - frame->begin;
    if (!(span > 0))
        return;
    const double each = round_up(span / 1e3 / 6, 10) * 1e3;
    as_html(out, "<g class=\"times\">");
    for (int n = 0; n * each <= span; n++) {
        const double t = n * each;
        as_words text;
        const double x = as_frame_x(frame, frame->begin + t);
        as_html(out, "<path class=\"grid\" d=\"M%.1f %.1fv5\"/>", x, frame->bottom);
        as_html(out,
                "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"%s\">%s</text>",
                x, frame->bottom + 19, x + 24 > frame->width ? "end" : "middle",
                t > 0 ? as_words_time((uint64_t)t, text) : "0");
    }
    as_html(out, "</g>\n");
}

// SPDX-License-Identifier: Apache-2.0
// Programs drawn from a seed: at most eight operations on few streams and little memory,
// so that they meet.
#include "generate.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct draw {
    uint64_t state;
    char *text;
    size_t bytes, used;
    unsigned queries;
    char streams[4], places[5][3];
    // Two threads, each with streams and an event of its own, that meet in memory.
    bool two;
    unsigned thread; // of the statement
    unsigned posted, taken; // hand-overs
    unsigned poster[2];
};

static unsigned choose(struct draw *draw, unsigned count)
{
    uint64_t x = draw->state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((x ^ x >> 31) >> 33) % count;
}

__attribute__((format(printf, 2, 3))) static void say(struct draw *draw,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (draw->used < draw->bytes)
        draw->used += (size_t)vsnprintf(draw->text + draw->used, draw->bytes - draw->used,
                                        format, args);
    va_end(args);
}

static void set_scene(struct draw *draw)
{
    static const char *const casts[] = {"abc", "ab0", "aA0", "AB0",
                                        "Ap0", "abx", "ABa", "ax1"};
    static const char *const scenes[] = {"D0D1P0", "D0P0P1", "D0D1D2", "D0P0H0",
                                         "D0E0P0"};

    draw->two = choose(draw, 4) == 0;
    (void)snprintf(draw->streams, sizeof(draw->streams), "%s",
                   casts[choose(draw, sizeof(casts) / sizeof(*casts))]);

    if (draw->two)
        (void)snprintf(draw->streams, sizeof(draw->streams), "abc");

    const char *scene = scenes[choose(draw, sizeof(scenes) / sizeof(*scenes))];

    // Two threads at pageable memory are no business of the device's.
    if (draw->two && strstr(scene, "H"))
        scene = scenes[1];

    for (int i = 0; i < 3; i++)
        (void)snprintf(draw->places[i], sizeof(draw->places[i]), "%.2s", scene + 2 * i);
}

static const char *place(struct draw *draw)
{
    return draw->places[choose(draw, 3)];
}

static const char *place_on_device(struct draw *draw)
{
    const char *found = place(draw);

    return *found == 'D' || *found == 'E' ? found : "D0";
}

static const char *place_on_host(struct draw *draw)
{
    const char *found = place(draw);

    return *found == 'P' || *found == 'H' ? found : "P0";
}

static char event(struct draw *draw, char stream)
{
    if (draw->two)
        return "ef"[draw->thread];
    return (char)(stream == 'x' || stream == '1' ? 'h' : "ef"[choose(draw, 2)]);
}

static void add_work(struct draw *draw, char stream, int number)
{
    const char *to = place(draw), *from = place(draw);

    switch (choose(draw, 6)) {
    case 0:
        say(draw, "%c %s=%d", stream, place_on_device(draw), number);
        return;
    case 1:
        say(draw, "%c %s+=%d", stream, place_on_device(draw), number);
        return;
    case 2:
        say(draw, "%c memset %s %d", stream, place_on_device(draw), number);
        return;
    case 3:
        to = place_on_device(draw);
        say(draw, "%c %s=%s", stream, to, place_on_device(draw));
        return;
    default:
        if (to == from)
            from = to == draw->places[0] ? draw->places[1] : draw->places[0];
        if (choose(draw, 5) || draw->two)
            say(draw, "%c copy %s %s", stream, to, from);
        else
            say(draw, "copy %s %s", to, from);
    }
}

static void add_order(struct draw *draw, char stream)
{
    const unsigned what = choose(draw, 12);
    const char any = draw->two ? event(draw, stream) : "efh"[choose(draw, 3)];

    if (what < 4)
        say(draw, "%c record %c", stream, event(draw, stream));
    else if (what < 7)
        say(draw, "%c wait %c", stream, any);
    else if (what == 7 || (draw->two && what == 9))
        say(draw, "%c sync", stream);
    else if (what == 8 || (draw->two && draw->queries == 3))
        say(draw, "%c sync", any);
    else if (what == 9 || draw->queries == 3)
        say(draw, "sync");
    else {
        draw->queries++;
        say(draw, "%c query", what == 10 ? stream : any);
    }
}

// Hands over, or takes what the other thread has handed over.
static bool hand_over(struct draw *draw)
{
    if (draw->taken < draw->posted && draw->poster[draw->taken] != draw->thread)
        say(draw, "take %c", "st"[draw->taken++]);
    else if (draw->posted < 2) {
        draw->poster[draw->posted] = draw->thread;
        say(draw, "post %c", "st"[draw->posted++]);
    } else
        return false;
    return true;
}

static void add_statement(struct draw *draw, int number)
{
    draw->thread = draw->two && choose(draw, 2);
    if (draw->thread)
        say(draw, "2: ");
    if (draw->two && choose(draw, 3) == 0 && hand_over(draw))
        return;

    const char stream =
        draw->thread ? 'c' : draw->streams[choose(draw, draw->two ? 2 : 3)];
    const unsigned what = choose(draw, 10);

    if (what < 5)
        add_work(draw, stream, number);
    else if (what < 8)
        add_order(draw, stream);
    else if (what == 8)
        say(draw, "read %s", place_on_host(draw));
    else
        say(draw, "%s=%d", place_on_host(draw), number);
}

void generate(uint64_t seed, uint64_t number, char *text, size_t bytes)
{
    struct draw draw = {
        .state = seed * 0x9e3779b97f4a7c15u ^ number << 20, .text = text, .bytes = bytes};
    const int count = 3 + (int)choose(&draw, 6);

    set_scene(&draw);
    for (int i = 0; i < count; i++) {
        add_statement(&draw, i + 1);
        say(&draw, "; ");
    }
    say(&draw, "show %s; show %s; show %s", draw.places[0], draw.places[1],
        draw.places[2]);
}

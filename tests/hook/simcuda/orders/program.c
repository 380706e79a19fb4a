// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char streams[] = "abcAB0pqx1";
static const char events[] = "efgh";
static const char handovers[] = "st";
static const char *const places[PLACES] = {"D0", "D1", "D2", "D3", "P0", "P1",
                                           "H0", "H1", "E0", "M0", "M1"};

enum kind place_kind(int place)
{
    static const enum kind kinds[PLACES] = {DEVICE, DEVICE, DEVICE,   DEVICE,
                                            PINNED, PINNED, PAGEABLE, PAGEABLE,
                                            DEVICE, POOL,   POOL};

    return kinds[place];
}

int place_device(int place)
{
    return place == 8;
}

int stream_device(int stream)
{
    return stream >= 8;
}

bool stream_is_legacy(int stream)
{
    return stream == 5 || stream == 9;
}

bool stream_is_blocking(int stream)
{
    return stream == 3 || stream == 4 || stream == 6 || stream == 7;
}

int event_device(int event)
{
    return event == 3;
}

static int find(const char *names, const char *word)
{
    const char *at = *word && !word[1] ? strchr(names, *word) : NULL;

    return at ? (int)(at - names) : -1;
}

// The place that the word begins with, and what follows it.
static int find_place(const char *word, const char **rest)
{
    for (int i = 0; i < PLACES; i++)
        if (!strncmp(places[i], word, 2)) {
            *rest = word + 2;
            return i;
        }
    return -1;
}

struct words {
    int count;
    char at[5][12];
};

static bool read_assignment(struct statement *statement, const char *word)
{
    const char *rest, *end = "";

    statement->to = find_place(word, &rest);
    if (statement->to < 0)
        return false;
    statement->verb = !strncmp(rest, "+=", 2) ? ADD : SET;
    if (*rest != '=' && statement->verb == SET)
        return false;
    rest += statement->verb == ADD ? 2 : 1;
    statement->from = find_place(rest, &end);
    if (statement->from >= 0 && statement->verb == SET)
        statement->verb = MOVE;
    else
        statement->value = (int)strtol(rest, (char **)&end, 10);
    return !*end;
}

static bool read_place(int *place, const char *word)
{
    const char *rest = "";

    *place = find_place(word, &rest);
    return *place >= 0 && !*rest;
}

// Verbs with their operands: e an event, t and f places, n a number, = an assignment, h a
// hand-over.
static const struct form {
    const char *name, *operands;
    enum verb verb;
    char subject; // s: a stream, o: or none, e: an event, -: none
} forms[] = {
    {"copy", "tf", COPY, 'o'},         {"memset", "tn", MEMSET, 'o'},
    {"host", "=", HOST, 's'},          {"record", "e", RECORD, 's'},
    {"wait", "e", WAIT, 's'},          {"sync", "", SYNC_STREAM, 's'},
    {"sync", "", SYNC_EVENT, 'e'},     {"sync", "", SYNC_DEVICE, '-'},
    {"query", "", QUERY_STREAM, 's'},  {"query", "", QUERY_EVENT, 'e'},
    {"read", "t", READ, '-'},          {"alloc", "t", ALLOC, 's'},
    {"free", "t", FREE_ASYNC, 's'},    {"free", "t", FREE, '-'},
    {"freehost", "t", FREE_HOST, '-'}, {"destroy", "", DESTROY, 's'},
    {"capture", "", CAPTURE, 's'},     {"end", "", END, 's'},
    {"launch", "", LAUNCH, 's'},       {"show", "t", SHOW, '-'},
    {"post", "h", POST, '-'},          {"take", "h", TAKE, '-'},
};

static bool read_operand(struct statement *statement, char kind, const char *word)
{
    const enum verb verb = statement->verb;
    bool good = true;

    switch (kind) {
    case 'e':
        statement->event = find(events, word);
        return statement->event >= 0;
    case 'h':
        statement->handover = find(handovers, word);
        return statement->handover >= 0;
    case 't':
        return read_place(&statement->to, word);
    case 'f':
        return read_place(&statement->from, word);
    case 'n':
        statement->value = atoi(word);
        return true;
    default:
        good = read_assignment(statement, word) && statement->verb == SET;
        statement->verb = verb;
        return good;
    }
}

static bool fits(const struct form *form, bool stream, bool event)
{
    switch (form->subject) {
    case 's':
        return stream;
    case 'e':
        return event;
    case 'o':
        return !event;
    default:
        return !stream && !event;
    }
}

static bool read_form(struct statement *statement, const struct words *words, int first)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const struct form *form = &forms[i];
        const int operands = (int)strlen(form->operands);
        bool good = !strcmp(words->at[first], form->name) &&
                    words->count == first + 1 + operands &&
                    fits(form, statement->stream >= 0, statement->event >= 0);

        if (!good)
            continue;
        statement->verb = form->verb;
        for (int n = 0; n < operands && good; n++)
            good = read_operand(statement, form->operands[n], words->at[first + 1 + n]);
        return good;
    }
    return false;
}

static bool read_statement(struct statement *statement, const struct words *words)
{
    const int thread = words->count > 1 && !strcmp(words->at[0], "2:");

    *statement = (struct statement){.thread = thread,
                                    .stream = -1,
                                    .event = -1,
                                    .to = -1,
                                    .from = -1,
                                    .seen = -1,
                                    .query = -1};
    if (words->count > thread + 1) {
        statement->stream = find(streams, words->at[thread]);
        statement->event = find(events, words->at[thread]);
    }

    const int first = thread + (statement->stream >= 0 || statement->event >= 0);

    if (read_form(statement, words, first))
        return true;
    if (words->count != first + 1 || statement->event >= 0 ||
        !read_assignment(statement, words->at[first]))
        return false;
    if (statement->stream < 0 && statement->verb != SET)
        return false;
    if (statement->stream < 0)
        statement->verb = WRITE;
    return true;
}

static void split(struct words *words, char *text)
{
    char *state;

    words->count = 0;
    for (char *word = strtok_r(text, " ", &state); word && words->count < 5;
         word = strtok_r(NULL, " ", &state))
        (void)snprintf(words->at[words->count++], sizeof(words->at[0]), "%s", word);
}

static void add_seen(struct program *program, struct statement *statement)
{
    const bool query = statement->verb == QUERY_STREAM || statement->verb == QUERY_EVENT;

    if (query)
        statement->query = program->query_count++;
    if (query || statement->verb == READ)
        statement->seen = program->seen_count++;
}

void program_parse(struct program *program, const char *text)
{
    char copy[512], *state;
    struct words words;

    *program = (struct program){.text = text};
    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *one = strtok_r(copy, ";", &state); one;
         one = strtok_r(NULL, ";", &state)) {
        split(&words, one);
        if (program->count < STATEMENTS_MAX &&
            read_statement(&program->at[program->count], &words)) {
            add_seen(program, &program->at[program->count++]);
            continue;
        }
        fprintf(stderr, "not understood: statement %d of '%s'\n", program->count + 1,
                text);
        exit(1);
    }
}

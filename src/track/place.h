// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TRACK_PLACE_H
#define AS_TRACK_PLACE_H

// Where in the model memory is made: blocks and other parts, by the number that the
// framework gives them. Each is kept once and known by a small index, 0 being none. There
// are at most AS_PLACES: further ones all are AS_PLACE_FURTHER, so that what they hold is
// told, if not which of them.
//
// Thread-safety: every function may be called from any thread. The running block is a
// thread's own.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_PLACES = 8192, AS_PLACE_FURTHER = AS_PLACES - 1 };

enum { AS_PLACE_TEXT = 256, AS_PLACE_WORDS = 12 }; // a name is cut to so many bytes

// The index of a block, which gets one when it is first asked for.
uint32_t as_place_of(uint64_t number);

// Names it; the text is copied.
void as_place_name(uint64_t number, const char *name);

// Writes the block's name, or its number where it has none; "" for 0.
void as_place_text(uint32_t block, char *text, size_t text_bytes);

// How many of the words between dots that their names begin with are alike: the same, or
// numbers, as in those of the members of a list. Words beyond AS_PLACE_WORDS count as one;
// 0 without a name. as_place_kind_text() writes that many words with "*" for numbers.
unsigned as_place_shared(uint32_t one, uint32_t two);
void as_place_kind_text(uint32_t block, unsigned words, char *text, size_t text_bytes);

// The block whose work this thread does now: entered, or set (what a backward does is told
// by what it uses) until as_place_reset(), which brings back the one that was entered.
uint32_t as_place_now(void);
void as_place_set(uint32_t block);
void as_place_reset(void);

// What a backward runs again begins or is over: the backward is then at work on the last
// one that was left outside of any other.
void as_place_again(bool begins);

// Leaving brings back what was before. It also leaves what was entered in between and never
// left; a number that was not entered changes nothing.
void as_place_enter(uint64_t number);
void as_place_leave(uint64_t number);

#endif

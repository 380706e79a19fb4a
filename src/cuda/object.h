// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CUDA_OBJECT_H
#define AS_CUDA_OBJECT_H

// The shared objects that the process has loaded, as the dynamic linker lists them.
// Nothing is opened and nothing is loaded here.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>

#define AS_OBJECT_NAME 512

// Finds a loaded object whose file name or SONAME begins with `prefix`, and writes what
// dlopen(RTLD_NOLOAD) takes for it. False: there is none.
bool as_object_find(const char *prefix, char name[AS_OBJECT_NAME]);

// Writes the first entry beginning with `prefix` of the libraries that the object
// holding `code` asks for (DT_NEEDED). False: it asks for none.
bool as_object_needs(const void *code, const char *prefix, char name[AS_OBJECT_NAME]);

// Writes the SONAME of the object that holds `code`. False: it has none.
bool as_object_soname(const void *code, char name[AS_OBJECT_NAME]);

// True if both addresses lie in one object.
bool as_object_same(const void *code, const void *other);

#endif

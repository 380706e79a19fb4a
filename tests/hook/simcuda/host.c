// SPDX-License-Identifier: Apache-2.0
// Loads a test as Python loads PyTorch: with RTLD_LOCAL, so that the runtime that comes
// with it by its RPATH is in nobody's global scope, unless it was preloaded.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
    if (argc < 2) {
        fprintf(stderr, "usage: host TEST.so [ARGUMENT...]\n");
        return 2;
    }

    void *test = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

    if (!test) {
        fprintf(stderr, "host: %s\n", dlerror());
        return 1;
    }

    int (*run)(int, char **) = (int (*)(int, char **))dlsym(test, "test_main");

    return run ? run(argc - 1, argv + 1) : 1;
}

// SPDX-License-Identifier: Apache-2.0
//
// Linked statically: no dynamic linker, no preload.
#include <stdio.h>

int main(void)
{
    puts("hello");
    return 7;
}

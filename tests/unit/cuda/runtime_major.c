// SPDX-License-Identifier: Apache-2.0
//
// A CUDA runtime of major version MAJOR, as far as its lookup is concerned.
int cudaMajorOfTest(void);

int cudaMajorOfTest(void)
{
    return MAJOR;
}

// SPDX-License-Identifier: Apache-2.0
//
// A library that was linked against one major version, as a framework is.
int cudaMajorOfTest(void);
int user_calls(void);

int user_calls(void)
{
    return cudaMajorOfTest();
}

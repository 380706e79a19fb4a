// SPDX-License-Identifier: Apache-2.0
// Nothing: stands for a library of NVIDIA's that slipped in.
int foreign(void);

int foreign(void)
{
    return 0;
}

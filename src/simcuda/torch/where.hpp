// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_WHERE_HPP
#define SIM_TORCH_WHERE_HPP

// Where in the Python program a call comes from, for messages. Slow.

#include <string>

namespace simtorch
{

// "train.py:57" of the innermost frame outside PyTorch; "" where this thread runs no
// Python.
std::string python_line();

// The same as a text that lives as long as the process, and NULL for "". Faster.
const char *program_line();

// True inside the formatting of a tensor for people, which looks at values to choose
// how many digits it shows.
bool python_prints_tensor();

} // namespace simtorch

#endif

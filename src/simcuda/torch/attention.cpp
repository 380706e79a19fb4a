// SPDX-License-Identifier: Apache-2.0
#include "attention.hpp"

namespace simtorch
{

} // namespace simtorch

// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's headers that every operator file needs, compiled once.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>

// SPDX-License-Identifier: Apache-2.0
#ifndef SIM_TORCH_ALIAS_HPP
#define SIM_TORCH_ALIAS_HPP

// CPU tensors over the same bytes as CUDA tensors: simcuda's device memory is host
// memory, so a CPU kernel can compute on it in place.

#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "simcuda/simcuda.h"

namespace simtorch
{

// The aliases of one operator call. Two CUDA tensors that share a storage get aliases
// that share one, and one tensor given twice gets one alias, so that kernels see the same
// overlaps as on the device. An alias owns nothing: the device memory below may be freed
// and reused as soon as the queue's order allows it. Tensors that are on the CPU already
// are copied, because the program may change them once the call has returned.
//
// Thread-safety: none; made on the calling thread, used later on the queue's.
class Aliases
{
  public:
    // `unread`: written without being read first.
    at::Tensor tensor(const at::Tensor &device, bool written, bool unread = false);

    // The same for whatever holds tensors (lists, optional tensors); a CUDA device
    // becomes the CPU; every other value stays.
    c10::IValue value(const c10::IValue &device, bool written, bool unread = false);

    // What the aliases cover, for the queue.
    const c10::SmallVectorImpl<sim_access> &accesses() const
    {
        return accesses_;
    }

  private:
    at::Tensor make(const at::Tensor &device);
    c10::Storage storage(const at::Tensor &device);
    void note(const at::Tensor &device, bool written, bool unread);

    c10::SmallVector<std::pair<const c10::TensorImpl *, at::Tensor>, 8> tensors_;
    c10::SmallVector<std::pair<const c10::StorageImpl *, c10::Storage>, 8> storages_;
    c10::SmallVector<sim_access, 8> accesses_;
};

// The bytes between a strided tensor's first and last element, and whether some of them
// belong to no element.
size_t extent_bytes(const at::Tensor &tensor);
bool has_gaps(const at::Tensor &tensor, size_t extent);

// What touching all elements of a strided tensor is.
sim_access access_of(const at::Tensor &tensor, bool written, bool unread);

} // namespace simtorch

#endif

// SPDX-License-Identifier: Apache-2.0
// Entry points of simtorch-<version>.so, called by simcuda_torch once torch is imported.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include "table.hpp"

namespace
{

// PyTorch warns of the first kernel that is replaced; here that is the purpose.
class Quiet : public c10::WarningHandler
{
    void process(const c10::Warning &) override
    {
    }
};

std::string error_text;

} // namespace

extern "C" {

__attribute__((visibility("default"))) int simtorch_activate(void);
__attribute__((visibility("default"))) const char *simtorch_error(void);

// Replaces the CUDA kernels of PyTorch's operators by ours, for the life of the process.
// Returns the number of operators, or -1: simtorch_error() then says why.
int simtorch_activate(void)
{
    Quiet quiet;
    c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    auto &dispatcher = c10::Dispatcher::singleton();
    int count = 0;
    try {
        auto names = dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CUDA);
        // One kernel for all devices.
        names.push_back({"aten::copy_", ""});
        names.push_back({"aten::convolution", ""});
        for (const auto &name : names) {
            const auto handle = dispatcher.findSchema(name);
            if (!handle || name.name.compare(0, 6, "aten::"))
                continue;
            auto made = simtorch::operator_for(*handle);
            if (!made)
                continue;
            auto kernel = c10::KernelFunction::makeFromBoxedFunctor(std::move(made));
            // The registration is never undone, so neither is the handle destroyed.
            new c10::RegistrationHandleRAII(
                dispatcher.registerImpl(name, c10::DispatchKey::CUDA, std::move(kernel),
                                        std::nullopt, nullptr, "simcuda"));
            count++;
        }
    } catch (const std::exception &error) {
        error_text = error.what();
        return -1;
    }
    return count;
}

const char *simtorch_error(void)
{
    return error_text.c_str();
}
}

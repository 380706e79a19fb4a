// SPDX-License-Identifier: Apache-2.0
// Entry points of simtorch-<version>.so, called by simcuda_torch once torch is imported.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include "check.hpp"
#include "foreign.hpp"
#include "host.hpp"
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
__attribute__((visibility("default"))) void simtorch_adopt(void);
__attribute__((visibility("default"))) void simtorch_constants(int by);
__attribute__((visibility("default"))) const char *simtorch_error(void);
__attribute__((visibility("default"))) const char *simtorch_operators(void);

// Replaces the CUDA kernels of PyTorch's operators by ours, for the life of the process.
// Returns the number of operators, or -1: simtorch_error() then says why.
int simtorch_activate(void)
{
    Quiet quiet;
    c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    auto &dispatcher = c10::Dispatcher::singleton();
    int count = 0;
    try {
        for (const auto &place : simtorch::places()) {
            const auto handle = dispatcher.findSchema(place.name);
            auto made = handle ? simtorch::operator_for(*handle, place.key) : nullptr;
            if (!made)
                continue;
            auto kernel = c10::KernelFunction::makeFromBoxedFunctor(std::move(made));
            // The registration is never undone, so neither is the handle destroyed.
            new c10::RegistrationHandleRAII(
                dispatcher.registerImpl(place.name, place.key, std::move(kernel),
                                        std::nullopt, nullptr, "simcuda"));
            count++;
        }
        simtorch::foreign_watch();
        simtorch::check_start();
        sim_host_pass_readable(simtorch::outer_call_reads);
    } catch (const std::exception &error) {
        error_text = error.what();
        return -1;
    }
    return count;
}

// Between 1 and -1 this thread runs what a compiler would have made kernels of.
void simtorch_constants(int by)
{
    simtorch::constants_count(by);
}

void simtorch_adopt(void)
{
    simtorch::foreign_adopt();
}

const char *simtorch_error(void)
{
    return error_text.c_str();
}

// A line for each operator with a CUDA kernel: its name, a tab, what it does here.
const char *simtorch_operators(void)
{
    static std::string lines;
    for (const auto &place : simtorch::places())
        if (const auto handle = c10::Dispatcher::singleton().findSchema(place.name);
            handle && place.key == c10::DispatchKey::CUDA)
            lines += c10::toString(place.name) + "\t" + simtorch::kind_of(*handle) + "\n";
    return lines.c_str();
}
}

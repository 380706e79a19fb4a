// SPDX-License-Identifier: Apache-2.0
#include "where.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include <functional>
#include <unordered_map>

#include <c10/core/CPUAllocator.h>

namespace simtorch
{

namespace
{

template <typename Function> Function *find(const char *name)
{
    return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

// Python is reached by name, as the program may be none.
struct Python {
    int (*is_initialized)() = find<int()>("Py_IsInitialized");
    int (*ensure)() = find<int()>("PyGILState_Ensure");
    void (*leave)(int) = find<void(int)>("PyGILState_Release");
    void *(*frame)() = find<void *()>("PyEval_GetFrame");
    void *(*back)(void *) = find<void *(void *)>("PyFrame_GetBack");
    void *(*code)(void *) = find<void *(void *)>("PyFrame_GetCode");
    int (*line)(void *) = find<int(void *)>("PyFrame_GetLineNumber");
    void *(*attribute)(void *, const char *) =
        find<void *(void *, const char *)>("PyObject_GetAttrString");
    const char *(*text)(void *) = find<const char *(void *)>("PyUnicode_AsUTF8");
    void (*hold)(void *) = find<void(void *)>("Py_IncRef");
    void (*release)(void *) = find<void(void *)>("Py_DecRef");
    void (*clear)() = find<void()>("PyErr_Clear");

    bool here() const
    {
        return is_initialized && ensure && leave && frame && back && code && line &&
               attribute && text && hold && release && clear && is_initialized();
    }
};

std::string file_of_code(const Python &python, void *code)
{
    void *name = python.attribute(code, "co_filename");
    const char *text = name ? python.text(name) : nullptr;
    const std::string file = text ? text : "";
    if (!text)
        python.clear();
    if (name)
        python.release(name);
    return file;
}

std::string file_of(const Python &python, void *frame)
{
    void *code = python.code(frame);
    const std::string file = code ? file_of_code(python, code) : "";
    if (code)
        python.release(code);
    return file;
}

// PyTorch's own folder, with its last slash.
std::string torch_folder()
{
    Dl_info found;
    if (!dladdr(reinterpret_cast<void *>(&c10::GetCPUAllocator), &found))
        return "/torch/";
    const std::string library = found.dli_fname;
    return library.substr(0, library.rfind("/lib/") + 1);
}

bool is_in(const std::string &file, const char *folder)
{
    return folder && *folder && !file.compare(0, strlen(folder), folder);
}

// Whether a file is the program's: not generated, nor PyTorch's, nor ours.
bool is_own(const std::string &file)
{
    static const std::string torch = torch_folder();
    static const char *compiled = getenv("TORCHINDUCTOR_CACHE_DIR");
    return !file.empty() && file.front() != '<' &&
           file.compare(0, torch.size(), torch) != 0 &&
           file.find("/actswap_torch/") == file.npos &&
           file.find("-packages/triton/") == file.npos &&
           file.find("/torchinductor_") == file.npos && !is_in(file, compiled) &&
           file.find("/simcuda_torch/") == file.npos;
}

// Calls seen(file, line) from the innermost frame outwards until it answers true.
void each_frame(const std::function<bool(const std::string &, int)> &seen)
{
    const Python python;
    if (!python.here())
        return;
    const int state = python.ensure();
    void *frame = python.frame();
    if (frame)
        python.hold(frame);
    while (frame) {
        const bool enough = seen(file_of(python, frame), python.line(frame));
        void *next = enough ? nullptr : python.back(frame);
        python.release(frame);
        frame = next;
    }
    python.leave(state);
}

} // namespace

std::string python_line()
{
    std::string found;
    each_frame([&](const std::string &file, int line) {
        if (!is_own(file))
            return false;
        found = file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
        return true;
    });
    return found;
}

namespace
{

// A code object that was seen stays, so that its address is not another's.
struct Code {
    bool own; // of the program
    std::string file;
    std::unordered_map<int, std::string> lines;
};

Code &code_of(const Python &python, void *code)
{
    static std::unordered_map<void *, Code> all; // Python's lock covers it
    const auto known = all.find(code);
    if (known != all.end())
        return known->second;
    const std::string file = file_of_code(python, code);
    python.hold(code);
    return all[code] = {is_own(file), file.substr(file.rfind('/') + 1), {}};
}

// The line of the frame if it is the program's.
const std::string *line_of(const Python &python, void *frame)
{
    void *code = python.code(frame);
    if (!code)
        return nullptr;
    Code &known = code_of(python, code);
    python.release(code);
    if (!known.own)
        return nullptr;
    const int line = python.line(frame);
    std::string &text = known.lines[line];
    if (text.empty())
        text = known.file + ":" + std::to_string(line);
    return &text; // kept as long as the process
}

} // namespace

const char *program_line()
{
    static const Python python;
    if (!python.here())
        return nullptr;
    const int state = python.ensure();
    const std::string *found = nullptr;
    void *frame = python.frame();
    if (frame)
        python.hold(frame);
    while (frame) {
        found = line_of(python, frame);
        void *next = found ? nullptr : python.back(frame);
        python.release(frame);
        frame = next;
    }
    python.leave(state);
    return found ? found->c_str() : nullptr;
}

bool python_prints_tensor()
{
    bool found = false;
    const std::string printer = torch_folder() + "_tensor_str.py";
    each_frame([&](const std::string &file, int) { return found = file == printer; });
    return found;
}

} // namespace simtorch

// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CORE_PYTHON_H
#define AS_CORE_PYTHON_H

// Gets a Python package of ours into the process that imports PyTorch, with nothing in
// its environment and no constructor.
//
// The trigger is __cudaRegisterFatBinary, which PyTorch's libraries call from inside
// `import torch`. It asks Python for a pending call; that call appends our folder to
// sys.path and sees to it that package.activate() runs when the import has ended:
// through the entry point group torch.backends (torch 2.5 and newer), and for older
// versions, or with TORCH_DEVICE_BACKEND_AUTOLOAD=0, by watching torch's module spec.
// activate() must therefore bear a second call. Works with -I, -E and -S.
//
// Thread-safety: every function may be called from any thread, with or without the GIL.

// Both strings must live as long as the process. Cheap enough for every call of the
// trigger: after the first that found torch it is one atomic load. Returns 0, also when
// this process is no Python; -ENOSPC when more than two packages are asked for, -EAGAIN
// when Python cannot take a pending call now (the next trigger tries again).
int as_python_inject(const char *folder, const char *package);

#endif

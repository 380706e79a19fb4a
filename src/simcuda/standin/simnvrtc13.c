// SPDX-License-Identifier: Apache-2.0
// A compiler whose programs are empty: where launches do nothing (nvrtcCompileProgram
// fails elsewhere) PyTorch's code around a kernel that is compiled at run time goes its
// way, and the driver keeps a module's name only. Signatures: NVIDIA's NVRTC
// documentation.
#include <stddef.h>

#include "core/export.h"

AS_EXPORT int nvrtcAddNameExpression(const void *program, const char *expression);
AS_EXPORT int nvrtcCreateProgram(void **made, const char *source, const char *name,
                                 int count, const char *const *headers,
                                 const char *const *includes);
AS_EXPORT int nvrtcDestroyProgram(void **program);
AS_EXPORT int nvrtcGetCUBIN(const void *program, char *code);
AS_EXPORT int nvrtcGetCUBINSize(const void *program, size_t *bytes);
AS_EXPORT int nvrtcGetLoweredName(const void *program, const char *expression,
                                  const char **name);
AS_EXPORT int nvrtcGetPTX(const void *program, char *code);
AS_EXPORT int nvrtcGetPTXSize(const void *program, size_t *bytes);
AS_EXPORT int nvrtcGetProgramLog(const void *program, char *text);
AS_EXPORT int nvrtcGetProgramLogSize(const void *program, size_t *bytes);

static int write_nothing(char *text)
{
    text[0] = '\0';
    return 0;
}

static int write_size(size_t *bytes)
{
    *bytes = 1; // the end of the text
    return 0;
}

int nvrtcAddNameExpression(const void *program, const char *expression)
{
    (void)program, (void)expression;
    return 0;
}

int nvrtcCreateProgram(void **made, const char *source, const char *name, int count,
                       const char *const *headers, const char *const *includes)
{
    static char program;

    (void)source, (void)name, (void)count, (void)headers, (void)includes;
    *made = &program;
    return 0;
}

int nvrtcDestroyProgram(void **program)
{
    *program = NULL;
    return 0;
}

int nvrtcGetCUBIN(const void *program, char *code)
{
    (void)program;
    return write_nothing(code);
}

int nvrtcGetCUBINSize(const void *program, size_t *bytes)
{
    (void)program;
    return write_size(bytes);
}

int nvrtcGetLoweredName(const void *program, const char *expression, const char **name)
{
    (void)program;
    *name = expression;
    return 0;
}

int nvrtcGetPTX(const void *program, char *code)
{
    (void)program;
    return write_nothing(code);
}

int nvrtcGetPTXSize(const void *program, size_t *bytes)
{
    (void)program;
    return write_size(bytes);
}

int nvrtcGetProgramLog(const void *program, char *text)
{
    (void)program;
    return write_nothing(text);
}

int nvrtcGetProgramLogSize(const void *program, size_t *bytes)
{
    (void)program;
    return write_size(bytes);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/report/category.h"

#include <string.h>

const struct as_category as_categories[] = {
    {"parameter", "weights and buffers of the model", true},
    {"optimizer_state", "what the optimizer keeps for each weight, such as momentum",
     true},
    {"gradient", "gradients of weights", true},
    {"input", "what the script fed in: batches, masks, positions", true},
    {"activation", "what forward saved for backward: what offload and recompute act on",
     true},
    {"autograd_detail", "gradients of activations, alive within backward", true},
    {"temporary", "neither saved nor kept: work space of one operation", true},
    {"unknown", "tensors that nothing told about", true},
    {"workspace", "kept by a library of the framework's, such as cuBLAS", true},
    {"context", "what CUDA and its driver keep for themselves", false},
    {"cached", "reserved by the framework's allocator and not in use", false},
    {"comm", "buffers of the communication library (NCCL)", false},
    {"other", "taken from the driver past the framework's allocator", false},
    {NULL, NULL, false},
};

static const struct as_category *find(const char *name)
{
    const struct as_category *category = as_categories;
    while (category->name && strcmp(category->name, name) != 0)
        category++;
    return category;
}

size_t as_category_order(const char *name)
{
    return (size_t)(find(name) - as_categories);
}

const char *as_category_known(const char *name)
{
    const struct as_category *const category = find(name);
    return category->name ? category->name : "unknown";
}

bool as_category_is_tensors(const char *name)
{
    const struct as_category *const category = name ? find(name) : NULL;
    return !category || !category->name || category->tensors;
}

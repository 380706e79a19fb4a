// SPDX-License-Identifier: Apache-2.0
#include "cli/report/modules.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/field.h"

struct node {
    struct as_module module;
    char *first; // the whole name of one of them
};

struct tree {
    struct node *nodes; // in no order
    size_t count, capacity;
};

// `bytes` of `name` as a new text with "*" for each number between dots.
static char *kind_of(const char *name, size_t bytes)
{
    char *const kind = malloc(bytes + 1);
    size_t used = 0;

    for (size_t at = 0; kind && at < bytes;) {
        const size_t all = strcspn(name + at, ".");
        const size_t word = all < bytes - at ? all : bytes - at;
        const bool number = word && strspn(name + at, "0123456789") >= word;

        memcpy(kind + used, number ? "*" : name + at, number ? 1 : word);
        used += number ? 1 : word;
        at += word;
        if (at < bytes)
            kind[used++] = name[at++];
    }
    if (kind)
        kind[used] = '\0';
    return kind;
}

// Of the module that the first `bytes` of `name` are; takes `kind`. NULL: no memory.
static struct as_module *node_of(struct tree *tree, char *kind, const char *name,
                                 size_t bytes)
{
    for (size_t n = 0; kind && n < tree->count; n++) {
        if (strcmp(tree->nodes[n].module.name, kind) == 0) {
            free(kind);
            return &tree->nodes[n].module;
        }
    }
    if (kind && tree->count == tree->capacity) {
        const size_t capacity = tree->capacity ? 2 * tree->capacity : 64;
        struct node *const nodes = reallocarray(tree->nodes, capacity, sizeof(*nodes));

        if (nodes) {
            tree->nodes = nodes;
            tree->capacity = capacity;
        }
    }
    if (!kind || tree->count == tree->capacity) {
        free(kind);
        return NULL;
    }
    tree->nodes[tree->count] = (struct node){{.name = kind}, strndup(name, bytes)};
    return &tree->nodes[tree->count++].module;
}

static bool begins(const char *name, const char *with, size_t bytes)
{
    return strncmp(name, with, bytes) == 0 && (name[bytes] == '.' || !name[bytes]);
}

// True if one of the first `count` rows is this module or lies in it.
static bool is_known(json_t *rows, size_t count, const char *name, size_t bytes)
{
    for (size_t n = 0; n < count; n++) {
        const char *const other = as_field_text(json_array_get(rows, n), "module");

        if (other && begins(other, name, bytes))
            return true;
    }
    return false;
}

static int add_row(struct tree *tree, json_t *rows, size_t n)
{
    json_t *const row = json_array_get(rows, n);
    const char *const name = as_field_text(row, "module");
    const uint64_t bytes = as_field_number(row, "peak_bytes");

    if (!name || bytes == AS_NOT_KNOWN)
        return 0;
    for (size_t end = strlen(name); end;) {
        struct as_module *const node = node_of(tree, kind_of(name, end), name, end);

        if (!node)
            return -ENOMEM;
        node->all_bytes += bytes;
        node->own_bytes += name[end] ? 0 : bytes;
        node->count += !is_known(rows, n, name, end);
        do
            end--;
        while (end && name[end] != '.');
    }
    return 0;
}

static bool is_inside(const struct as_module *node, const struct as_module *of)
{
    const size_t bytes = of ? strlen(of->name) : 0;

    return !of || (begins(node->name, of->name, bytes) && node->name[bytes] == '.');
}

static bool is_child(const struct as_module *node, const struct as_module *of)
{
    return is_inside(node, of) &&
           !strchr(node->name + (of ? strlen(of->name) + 1 : 0), '.');
}

static struct node *largest_child(const struct tree *tree, const struct as_module *of)
{
    struct node *best = NULL;

    for (size_t n = 0; n < tree->count; n++) {
        struct node *const node = &tree->nodes[n];

        if (!node->module.depth && is_child(&node->module, of) &&
            (!best || node->module.all_bytes > best->module.all_bytes))
            best = node;
    }
    return best;
}

// What only holds one other, and made nothing itself, is left out. While it is at work,
// the depth of nodes that are done is one more than it will be.
static void list_children(struct as_modules *modules, struct tree *tree,
                          const struct as_module *of, size_t depth)
{
    struct node *next;

    while ((next = largest_child(tree, of))) {
        struct as_module *const node = &next->module;
        bool is_shell = !node->own_bytes;
        size_t children = 0;

        node->depth = depth + 1;
        for (size_t n = 0; n < tree->count; n++)
            children += is_child(&tree->nodes[n].module, node);
        is_shell = is_shell && children == 1;
        if (!is_shell) {
            modules->list[modules->count] = *node;
            modules->list[modules->count].depth = depth;
            if (node->count == 1 && next->first) {
                modules->list[modules->count].name = next->first;
                next->first = NULL;
            } else {
                modules->list[modules->count].name = strdup(node->name);
            }
            modules->count++;
        }
        list_children(modules, tree, node, depth + !is_shell);
    }
}

int as_modules_init(struct as_modules *modules, json_t *report)
{
    json_t *const rows = as_field(report, "modules");
    struct tree tree = {0};
    int err = 0;

    *modules = (struct as_modules){0};
    for (size_t n = 0; !err && n < json_array_size(rows); n++)
        err = add_row(&tree, rows, n);
    if (!err && tree.count)
        modules->list = calloc(tree.count, sizeof(*modules->list));
    if (!err && modules->list)
        list_children(modules, &tree, NULL, 0);
    for (size_t n = 0; n < tree.count; n++) {
        free(tree.nodes[n].module.name);
        free(tree.nodes[n].first);
    }
    free(tree.nodes);
    return err;
}

void as_modules_finish(struct as_modules *modules)
{
    for (size_t n = 0; n < modules->count; n++)
        free(modules->list[n].name);
    free(modules->list);
    *modules = (struct as_modules){0};
}

uint64_t as_modules_least(const struct as_modules *modules, size_t most)
{
    uint64_t least = 0;

    // Few rows are shown, so each is looked for.
    for (size_t n = 0; n < modules->count; n++) {
        size_t larger = 0;

        for (size_t i = 0; i < modules->count; i++)
            larger += modules->list[i].all_bytes > modules->list[n].all_bytes;
        if (larger >= most && modules->list[n].all_bytes >= least)
            least = modules->list[n].all_bytes + 1;
    }
    return least;
}

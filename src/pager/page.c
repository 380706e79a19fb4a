// SPDX-License-Identifier: Apache-2.0
#include "pager/page.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

// Without it uthash ends the user's run when memory is short.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct as_page_links {
    struct as_page_key key;
    struct actswap_page *page;
    UT_hash_handle hh;
};

struct as_page_table {
    struct as_page_links *root;
};

static_assert(sizeof(struct as_page_key) == 4 * sizeof(uint64_t),
              "the key is hashed as bytes");

void as_page_append(struct as_page_list *list, struct actswap_page *page)
{
    struct as_page_node *node = &page->nodes[list->use];
    assert(!node->list);
    *node = (struct as_page_node){.list = list, .previous = list->last};
    if (list->last)
        list->last->nodes[list->use].next = page;
    else
        list->first = page;
    list->last = page;
}

void as_page_prepend(struct as_page_list *list, struct actswap_page *page)
{
    struct as_page_node *node = &page->nodes[list->use];
    assert(!node->list);
    *node = (struct as_page_node){.list = list, .next = list->first};
    if (list->first)
        list->first->nodes[list->use].previous = page;
    else
        list->last = page;
    list->first = page;
}

void as_page_unlink(struct actswap_page *page, enum as_page_use use)
{
    const struct as_page_node node = page->nodes[use];
    if (!node.list)
        return;
    if (node.previous)
        node.previous->nodes[use].next = node.next;
    else
        node.list->first = node.next;
    if (node.next)
        node.next->nodes[use].previous = node.previous;
    else
        node.list->last = node.previous;
    page->nodes[use] = (struct as_page_node){0};
}

struct as_page_table *as_page_table_create(void)
{
    return calloc(1, sizeof(struct as_page_table));
}

void as_page_table_destroy(struct as_page_table *table)
{
    assert(!table || !table->root);
    free(table);
}

struct actswap_page *as_page_table_find(struct as_page_table *table,
                                        const struct as_page_key *key)
{
    struct as_page_links *links;
    HASH_FIND(hh, table->root, key, sizeof(*key), links);
    return links ? links->page : NULL;
}

int as_page_table_add(struct as_page_table *table, struct actswap_page *page)
{
    if (as_page_table_find(table, &page->key))
        return -EEXIST;
    struct as_page_links *links = calloc(1, sizeof(*links));
    if (!links)
        return -ENOMEM;
    links->key = page->key;
    links->page = page;
    HASH_ADD(hh, table->root, key, sizeof(links->key), links);
    if (!links->hh.tbl) { // how uthash says that it had no memory
        free(links);
        return -ENOMEM;
    }
    page->links = links;
    return 0;
}

void as_page_table_remove(struct as_page_table *table, struct actswap_page *page)
{
    if (!page->links)
        return;
    HASH_DEL(table->root, page->links);
    free(page->links);
    page->links = NULL;
}

void as_page_table_each(struct as_page_table *table,
                        void (*visit)(struct actswap_page *page, void *context),
                        void *context)
{
    for (struct as_page_links *links = table->root; links; links = links->hh.next)
        visit(links->page, context);
}

size_t as_page_table_count(const struct as_page_table *table)
{
    return HASH_COUNT(table->root);
}

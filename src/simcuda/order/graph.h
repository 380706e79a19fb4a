// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_ORDER_GRAPH_H
#define AS_SIMCUDA_ORDER_GRAPH_H

// Graphs: nodes of work and what each comes after. A node's work is shared by the graph,
// its clones, whatever was instantiated from it and its queued replays, and ends with the
// last of them.
//
// A graph's handle is a slot as a stream's is; a node's is its address, so one that was
// destroyed may not be used again, as on a card.
//
// Thread-safety: none; with the queue's lock held, but for what says otherwise.

#include <stdio.h>

#include "simcuda/order/queue.h"

// Work that is run any number of times, never two at a time. `destroy` is called once, by
// sim_works_sweep().
struct sim_shared_work {
    unsigned references;
    struct sim_task task; // its `lost` is the work's own
    cudaEvent_t event; // of nodes that record an event or wait for one
    struct sim_shared_work *dropped; // the next one
};

struct sim_nodes {
    struct CUgraphNode_st **at;
    size_t count, capacity;
};

struct CUgraphNode_st {
    struct sim_graph *graph;
    struct sim_shared_work *work;
    struct sim_graph *child; // owned, or NULL
    unsigned number; // in order of creation
    bool marked; // by whoever walks the graph
    size_t place; // where it is in a plan, while one is made
    struct sim_nodes before, after;
};

// Objects of the user's that live as long as the graph.
struct sim_held {
    struct sim_shared_work *object;
    unsigned count;
};

struct sim_graph {
    cudaGraph_t handle; // NULL: a child's
    unsigned id;
    unsigned numbers;
    unsigned captures; // that add to it now
    struct sim_nodes nodes;
    struct sim_held *held;
    size_t held_count;
};

// NULL: no memory. The task is the work's from then on, and stays the caller's else.
struct sim_shared_work *sim_shared_work_create(const struct sim_task *task);
struct sim_shared_work *sim_shared_work_hold(struct sim_shared_work *work);
void sim_shared_work_release(struct sim_shared_work *work); // NULL is fine

// Ends work that was released for the last time. Without the lock: what is called may be
// the program's.
void sim_works_sweep(void);

// Sets of nodes. false: no memory.
bool sim_nodes_add(struct sim_nodes *nodes, struct CUgraphNode_st *node);
bool sim_nodes_add_all(struct sim_nodes *nodes, const struct sim_nodes *more);
bool sim_nodes_hold(const struct sim_nodes *nodes, const struct CUgraphNode_st *node);
void sim_nodes_remove(struct sim_nodes *nodes, const struct CUgraphNode_st *node);
void sim_nodes_finish(struct sim_nodes *nodes);

// NULL: no memory.
struct sim_graph *sim_graph_create(void);
struct sim_graph *sim_graph_find(cudaGraph_t handle);
struct sim_graph *sim_graph_clone(const struct sim_graph *graph);
void sim_graph_destroy(struct sim_graph *graph); // NULL is fine
// Its handle, made if it has none. NULL: no memory.
cudaGraph_t sim_graph_name(struct sim_graph *graph);

// A node after those `before`; takes over a reference to the work. NULL: no memory, and
// the reference is the caller's.
struct CUgraphNode_st *sim_graph_add(struct sim_graph *graph,
                                     struct sim_shared_work *work,
                                     const struct sim_nodes *before);
void sim_graph_remove(struct CUgraphNode_st *node);

// false: no memory.
bool sim_node_after(struct CUgraphNode_st *node, struct CUgraphNode_st *before);
void sim_node_not_after(struct CUgraphNode_st *node, struct CUgraphNode_st *before);

// Marks the nodes and all that they come after; every other mark is taken away.
// false: no memory.
bool sim_graph_mark(struct sim_graph *graph, const struct sim_nodes *nodes);

// The graph holds `count` more references to the object. false: no memory.
bool sim_graph_retain(struct sim_graph *graph, struct sim_shared_work *object,
                      unsigned count);
// false: it does not hold so many.
bool sim_graph_let_go(struct sim_graph *graph, const struct sim_shared_work *object,
                      unsigned count);

const char *sim_node_type_name(enum cudaGraphNodeType type);
void sim_graph_print(const struct sim_graph *graph, FILE *file);

#endif

# SPDX-License-Identifier: Apache-2.0
"""Rows that are looked up, routed, scattered and sorted."""

import torch
import torch.nn.functional as F
from torch import nn

from .registry import STEPS, adamw, model, sgd, train

WIDTH = 16


@model(values="aten::_coalesce")
def sparse_embedding(place):
    """Sparse gradients and SparseAdam beside a dense optimizer."""
    words = place.put(nn.Embedding(60, WIDTH, sparse=True))
    head = place.put(nn.Linear(WIDTH, 5))
    sparse = torch.optim.SparseAdam(words.parameters(), lr=0.01)
    dense = sgd(head.parameters())
    for _ in range(STEPS):
        sparse.zero_grad()
        dense.zero_grad()
        loss = F.cross_entropy(
            head(words(place.whole(60, 9, 4)).mean(1)), place.whole(5, 9)
        )
        loss.backward()
        place.record(loss, words, head)
        sparse.step()
        dense.step()
    place.finish(words, head)


@model
def embedding(place):
    """Padding, a largest norm, and gradients scaled by frequency."""
    one = nn.Embedding(30, WIDTH, padding_idx=3)
    two = nn.Embedding(30, WIDTH, scale_grad_by_freq=True)
    three = nn.Embedding(30, WIDTH, max_norm=1.0)
    net = nn.ModuleList([one, two, three])

    def loss(step):
        words = place.whole(30, 9, 4)
        return sum(
            (layer(words) * (i + 1)).sum(1).square().mean() for i, layer in enumerate(net)
        )

    train(place, net, loss)


@model
def bags(place):
    net = nn.ModuleList(
        nn.EmbeddingBag(30, WIDTH, mode=m) for m in ("sum", "mean", "max")
    )

    def loss(step):
        words = place.whole(30, 20)
        starts = torch.tensor([0, 3, 3, 11], device=place.device)
        weights = place.uniform(20)
        total = net[0](words, starts, weights).square().mean()
        return total + sum(bag(words, starts).square().mean() for bag in net[1:])

    train(place, net, loss)


@model
def factorisation(place):
    """A recommender: factors, biases, negatives."""
    users, things = nn.Embedding(20, WIDTH), nn.Embedding(30, WIDTH)
    bias = nn.Embedding(30, 1)

    def loss(step):
        who, liked, other = place.whole(20, 32), place.whole(30, 32), place.whole(30, 32)

        def score(thing):
            return (users(who) * things(thing)).sum(1) + bias(thing)[:, 0]

        return -F.logsigmoid(score(liked) - score(other)).mean()

    train(place, nn.ModuleList([users, things, bias]), loss, adamw)


class Experts(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.router = nn.Linear(WIDTH, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 32), nn.SiLU(), nn.Linear(32, WIDTH))
            for _ in range(count)
        )

    def balance(self, share):
        return (share.mean(0) ** 2).sum() * len(self.experts)


@model(values="aten::nonzero")
def experts_by_index(place):
    """Tokens go to their experts by index and are added back: sizes depend on values."""
    net = Experts()

    def loss(step):
        x = place.normal(24, WIDTH)
        share = net.router(x).softmax(1)
        weights, chosen = share.topk(2, 1)
        weights = weights / weights.sum(1, keepdim=True)
        y = torch.zeros_like(x)
        for i, expert in enumerate(net.experts):
            row, rank = (chosen == i).nonzero(as_tuple=True)
            y.index_add_(0, row, expert(x[row]) * weights[row, rank, None])
        return F.mse_loss(y, x) + 0.01 * net.balance(share)

    train(place, net, loss)


@model
def experts_by_capacity(place):
    """The same with a fixed capacity: sorted, gathered, scattered."""
    net = Experts()

    def loss(step):
        x = place.normal(24, WIDTH)
        share = net.router(x).softmax(1)
        weights, chosen = share.max(1)
        order = chosen.argsort(stable=True)
        rows = order.view(4, 6)
        y = torch.stack([e(x[r]) for e, r in zip(net.experts, rows)]).flatten(0, 1)
        y = torch.zeros_like(x).index_copy(0, order, y) * weights[:, None]
        return F.mse_loss(y, x) + 0.01 * net.balance(share)

    train(place, net, loss)


def edges(place):
    return place.whole(12, 40), place.whole(12, 40)


@model
def graph_convolution(place):
    """Messages along edges, added up, by degree."""
    first, second = nn.Linear(WIDTH, 32), nn.Linear(32, 3)
    source, target = edges(place)

    def spread(x):
        degree = torch.zeros(12, device=place.device).index_add(
            0, target, torch.ones(40, device=place.device)
        )
        total = torch.zeros(12, x.shape[1], device=place.device)
        return total.index_add(0, target, x[source]) / degree.clamp(min=1)[:, None]

    def loss(step):
        y = spread(second(F.relu(spread(first(place.normal(12, WIDTH))))))
        return F.cross_entropy(y, place.whole(3, 12))

    train(place, nn.ModuleList([first, second]), loss)


@model
def graph_reductions(place):
    net = nn.Linear(WIDTH, WIDTH)
    _, target = edges(place)

    def loss(step):
        x = net(place.normal(40, WIDTH))
        index = target[:, None].expand(-1, WIDTH)
        start = torch.zeros(12, WIDTH, device=place.device)
        kinds = ("sum", "mean", "amax", "amin")
        parts = [start.scatter_reduce(0, index, x, k, include_self=False) for k in kinds]
        return torch.stack(parts).square().mean() + start.scatter_add(0, index, x).std()

    train(place, net, loss)


@model
def graph_attention(place):
    """Dense, over all pairs of nodes."""
    project, score = nn.Linear(WIDTH, WIDTH), nn.Linear(2 * WIDTH, 1)
    near = place.uniform(12, 12) < 0.4
    near.fill_diagonal_(True)

    def loss(step):
        y = project(place.normal(12, WIDTH))
        pairs = torch.cat(torch.broadcast_tensors(y[:, None], y[None]), 2)
        weights = F.leaky_relu(score(pairs)[..., 0]).masked_fill(~near, -1e9).softmax(1)
        return F.cross_entropy(F.elu(weights @ y), place.whole(WIDTH, 12))

    train(place, nn.ModuleList([project, score]), loss)


@model(values="aten::_coalesce")
def sparse_product(place):
    """A sparse adjacency matrix times dense features."""
    net = nn.Linear(WIDTH, WIDTH)
    near = torch.stack(edges(place))
    matrix = torch.sparse_coo_tensor(near, place.uniform(40), (12, 12)).coalesce()

    def loss(step):
        return torch.sparse.mm(matrix, net(place.normal(12, WIDTH))).square().mean()

    train(place, net, loss)


@model
def point_cloud(place):
    """Nearest neighbours by distance, edges' features, the largest of each."""
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))

    def loss(step):
        x = place.normal(2, 20, 3)
        near = torch.cdist(x, x).topk(4, largest=False).indices
        there = x.gather(1, near.flatten(1)[..., None].expand(-1, -1, 3)).view(
            2, 20, 4, 3
        )
        here = x[:, :, None].expand_as(there)
        y = net(torch.cat([here, there - here], 3)).amax(2)
        return F.cross_entropy(y.mean(1), place.whole(8, 2))

    train(place, net, loss)


@model
def ranking(place):
    """Losses over what is sorted, taken and put."""
    net = nn.Linear(WIDTH, 1)

    def loss(step):
        y, worth = net(place.normal(4, 20, WIDTH))[..., 0], place.uniform(4, 20)
        order = worth.argsort(1, descending=True)
        sorted_scores = y.gather(1, order)
        listed = sorted_scores.flip(1).logcumsumexp(1).flip(1) - sorted_scores
        high, at = y.sort(1)
        kth = y.kthvalue(3, 1).values + y.median(1).values + y.mode(1).values
        spread = torch.zeros_like(y).scatter(1, at, high.cumsum(1))
        return listed.mean() + kth.mean() + spread.std() + torch.take(y, order[0]).mean()

    train(place, net, loss)


@model
def quantiles(place):
    net = nn.Linear(WIDTH, 3)

    def loss(step):
        y, wanted = net(place.normal(30, WIDTH)), place.normal(30, 1)
        levels = torch.tensor([0.1, 0.5, 0.9], device=place.device)
        off = wanted - y
        pinball = torch.maximum(levels * off, (levels - 1) * off).mean()
        return pinball + torch.quantile(y, levels, dim=0).square().mean()

    train(place, net, loss)


@model
def clustering(place):
    """Centres are averages of what is near: segments, counts, one_hot."""
    net = nn.Linear(WIDTH, 4)
    centres = place.normal(3, 4)

    def loss(step):
        y = net(place.normal(30, WIDTH))
        near = torch.cdist(y, centres).argmin(1)
        hot = F.one_hot(near, 3).float()
        means = (hot.T @ y) / hot.sum(0).clamp(min=1)[:, None]
        return (y - means[near]).square().mean() - torch.pdist(means).mean() * 0.1

    train(place, net, loss)


@model(values="aten::nonzero")
def chosen_rows(place):
    """The loss of those alone that a mask chooses, and each class once."""
    net = nn.Linear(WIDTH, 5)

    def loss(step):
        x, label = place.normal(30, WIDTH), place.whole(5, 30)
        y = net(x)
        kept = label > 1
        classes, counts = label[kept].unique(return_counts=True)
        weight = torch.ones(5, device=place.device).index_put(
            (classes,), 1 / counts.float()
        )
        return F.cross_entropy(y[kept], label[kept], weight) + y[~kept].square().mean()

    train(place, net, loss)


@model
def transport(place):
    """Sinkhorn iterations between two sets."""
    net = nn.Linear(WIDTH, 4)

    def loss(step):
        cost = torch.cdist(net(place.normal(8, WIDTH)), place.normal(6, 4), p=2.0) ** 2
        rows = torch.zeros(8, device=place.device)
        columns = torch.zeros(6, device=place.device)
        for _ in range(5):
            rows = -torch.logsumexp(columns - cost, 1)
            columns = -torch.logsumexp(rows[:, None] - cost, 0)
        return ((rows[:, None] + columns - cost).exp() * cost).sum()

    train(place, net, loss)

# SPDX-License-Identifier: Apache-2.0
"""Every loss of PyTorch on a small network, several in one model."""

import torch
import torch.nn.functional as F
from torch import nn

from .registry import model, train

WIDTH, CLASSES, ROWS = 16, 7, 12


def network():
    return nn.Sequential(nn.Linear(WIDTH, 24), nn.Tanh(), nn.Linear(24, CLASSES))


def trained_on(place, losses):
    net = network()
    train(place, net, lambda step: losses(net(place.normal(ROWS, WIDTH))))


@model
def classification(place):
    weight = place.uniform(CLASSES)

    def losses(y):
        label, shares = place.whole(CLASSES, ROWS), place.normal(ROWS, CLASSES).softmax(1)
        label[2] = -100
        total = F.cross_entropy(y, label, label_smoothing=0.1)
        total = total + F.cross_entropy(y, label, weight, reduction="sum") / ROWS
        total = total + F.cross_entropy(y, shares, label_smoothing=0.2)
        total = total + F.nll_loss(y.log_softmax(1), label.clamp(min=0), weight)
        margins = F.multi_margin_loss(y, label.clamp(min=0), weight=weight)
        return total + margins

    trained_on(place, losses)


@model
def several_labels(place):
    weight = place.uniform(CLASSES)

    def losses(y):
        hot = place.whole(2, ROWS, CLASSES).float()
        total = F.binary_cross_entropy_with_logits(y, hot, pos_weight=weight)
        total = total + F.binary_cross_entropy(y.sigmoid(), hot, weight)
        total = total + F.multilabel_soft_margin_loss(y, hot)
        share = y.sigmoid() * hot + (1 - y.sigmoid()) * (1 - hot)
        focal = ((1 - share) ** 2 * -share.clamp(min=1e-6).log()).mean()
        label = torch.full((ROWS, CLASSES), -1, device=place.device)
        label[:, 0] = place.whole(CLASSES, ROWS)
        return total + focal + F.multilabel_margin_loss(y, label)

    trained_on(place, losses)


@model
def regression(place):
    def losses(y):
        wanted = place.normal(ROWS, CLASSES)
        total = F.mse_loss(y, wanted) + F.l1_loss(y, wanted) + F.huber_loss(y, wanted)
        total = total + F.smooth_l1_loss(y, wanted, beta=0.5)
        total = total + F.poisson_nll_loss(y, wanted.abs().round(), full=True)
        total = total + F.gaussian_nll_loss(y, wanted, y.exp())
        return (
            total
            + (y - wanted).cosh().log().mean()
            + F.mse_loss(y, wanted, weight=y.exp())
        )

    trained_on(place, losses)


@model(values="to satisfy the constraint")
def divergences(place):
    def losses(y):
        other = place.normal(ROWS, CLASSES).log_softmax(1)
        own = y.log_softmax(1)
        total = F.kl_div(own, other.exp(), reduction="batchmean")
        total = total + F.kl_div(own, other, log_target=True, reduction="sum")
        middle = torch.logaddexp(own, other)
        entropy = torch.special.entr(own.exp()).sum(1).mean()
        normal = torch.distributions.Normal(y[:, 0], y[:, 1].exp())
        prior = torch.distributions.Normal(0.0, 1.0)
        between = torch.distributions.kl_divergence(normal, prior).mean()
        return total + (own - middle).mean() - entropy + between

    trained_on(place, losses)


@model
def metric_learning(place):
    def losses(y):
        one, two, three = y.chunk(3)
        sign = place.whole(2, ROWS // 3) * 2.0 - 1
        total = F.triplet_margin_loss(one, two, three, swap=True)
        total = total + F.cosine_embedding_loss(one, two, sign, margin=0.1)
        total = total + F.hinge_embedding_loss((one - two).norm(dim=1), sign)
        total = total + F.margin_ranking_loss(one[:, 0], two[:, 0], sign, margin=0.2)
        total = total + F.soft_margin_loss(one[:, 1], sign)
        near = F.normalize(one) @ F.normalize(two).T / 0.1
        target = torch.arange(ROWS // 3, device=place.device)
        pairs = F.cross_entropy(near, target) + F.cross_entropy(near.T, target)
        return total + pairs + F.pairwise_distance(two, three).mean()

    trained_on(place, losses)


@model(values="aten::equal")
def moments(place):
    """Variances, norms, products, extremes; VICReg's and CORAL's parts."""

    def losses(y):
        other = place.normal(ROWS, CLASSES)
        covariance = torch.cov(y.T)
        total = F.relu(1 - y.var(0).sqrt()).mean() + covariance.triu(1).square().sum()
        total = total + (covariance - torch.cov(other.T)).square().mean()
        total = total + y.norm(p=3) + torch.corrcoef(y.T).std()
        total = total + y.sigmoid().prod(1).mean() + y.cumprod(1).mean() + y.aminmax().max
        spread = torch.std_mean(y, dim=0)
        return total + spread[0].mean() + (spread[1] - other.mean(0)).abs().amax()

    trained_on(place, losses)


@model
def elementwise(place):
    """Functions that few use, each with its gradient."""

    def losses(y):
        x = y.sigmoid() * 0.8 + 0.1
        parts = [torch.lgamma(x), torch.erf(x), torch.erfinv(x), torch.digamma(x + 1)]
        parts += [torch.expm1(x), torch.log1p(x), torch.asin(x), torch.atan2(x, x + 1)]
        parts += [torch.sinc(x), torch.special.i0(x), torch.special.ndtri(x)]
        parts += [torch.hypot(x, y), torch.xlogy(x, x), torch.logit(x), torch.frac(y)]
        parts += [torch.fmod(y, 0.7), torch.copysign(x, y), torch.special.log_ndtr(y)]
        parts += [torch.nan_to_num(y), torch.where(y > 0, x.rsqrt(), x.log2())]
        return torch.stack([p.mean() for p in parts]).sum()

    trained_on(place, losses)

# SPDX-License-Identifier: Apache-2.0
"""Models that make data, and others that draw random numbers while they train."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .registry import STEPS, THREADS, adamw, model, train

WIDTH = 8


def layers(*sizes, last=None):
    found = []
    for narrow, wide in zip(sizes, sizes[1:]):
        found += [nn.Linear(narrow, wide), nn.LeakyReLU(0.2)]
    return nn.Sequential(*found[:-1], *([last] if last else []))


def noise(place, *shape):
    return place.draw(lambda: torch.randn(shape, device=place.device))


@model
def adversarial(place):
    """Two networks, two optimizers, a frozen critic in the second half."""
    maker, critic = place.put(layers(4, 16, WIDTH), layers(WIDTH, 16, 1))
    first, second = (
        torch.optim.Adam(n.parameters(), 0.01, (0.5, 0.9)) for n in (critic, maker)
    )
    ones, zeros = (torch.full((9, 1), v, device=place.device) for v in (1.0, 0.0))
    compare = F.binary_cross_entropy_with_logits
    for _ in range(STEPS):
        made = maker(noise(place, 9, 4))
        first.zero_grad()
        loss = compare(critic(place.normal(9, WIDTH)), ones)
        loss = loss + compare(critic(made.detach()), zeros)
        loss.backward()
        first.step()
        second.zero_grad()
        critic.requires_grad_(False)
        fooled = compare(critic(made), ones)
        fooled.backward()
        critic.requires_grad_(True)
        second.step()
        place.record(loss + fooled.detach(), maker, critic)
    place.finish(maker, critic)


@model(race=THREADS)
def wasserstein(place):
    maker, critic = place.put(layers(4, 16, WIDTH), layers(WIDTH, 16, 1))
    optimizer = torch.optim.RMSprop(critic.parameters(), 1e-3)
    for _ in range(STEPS):
        with torch.no_grad():
            made = maker(noise(place, 9, 4))
        real = place.normal(9, WIDTH)
        share = place.draw(lambda: torch.rand(9, 1, device=place.device))
        between = torch.lerp(real, made, share).requires_grad_()
        score = critic(between)
        slope = torch.autograd.grad(
            score, between, torch.ones_like(score), create_graph=True
        )[0]
        penalty = 10 * (slope.norm(2, 1) - 1).pow(2).mean()
        loss = critic(made).mean() - critic(real).mean() + penalty
        optimizer.zero_grad()
        loss.backward()
        place.record(loss, critic)
        optimizer.step()
    place.finish(critic)


@model
def variational(place):
    encode, decode = layers(WIDTH, 16, 6), layers(3, 16, WIDTH)

    def loss(step):
        x = place.uniform(9, WIDTH)
        mean, log_variance = encode(x).chunk(2, 1)
        drawn = mean + (0.5 * log_variance).exp() * noise(place, 9, 3)
        said = F.binary_cross_entropy(decode(drawn).sigmoid(), x, reduction="sum")
        return said - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()

    train(place, nn.ModuleList([encode, decode]), loss, adamw)


@model
def quantised(place):
    """Nearest code words, straight through."""
    encode, decode, words = (
        layers(WIDTH, 16, 4),
        layers(4, 16, WIDTH),
        nn.Embedding(10, 4),
    )
    net = nn.ModuleList([encode, decode, words])

    def loss(step):
        x = place.normal(9, WIDTH)
        y = encode(x)
        code = words(torch.cdist(y, words.weight).argmin(1))
        commit = F.mse_loss(code, y.detach()) + 0.25 * F.mse_loss(y, code.detach())
        return F.mse_loss(decode(y + (code - y).detach()), x) + commit

    train(place, net, loss, adamw)


@model
def diffusion(place):
    """A denoising step, times drawn on the device, weights by an average."""
    net = layers(WIDTH + 4, 32, WIDTH)
    shares = torch.linspace(1e-4, 0.02, 50).neg().add(1).cumprod(0).to(place.device)
    waves = 2.0 ** torch.arange(2, device=place.device)
    ema = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    average = torch.optim.swa_utils.AveragedModel(place.put(net), multi_avg_fn=ema)

    def loss(step):
        x, added = place.normal(9, WIDTH), noise(place, 9, WIDTH)
        time = place.draw(lambda: torch.randint(0, 50, (9,), device=place.device))
        share = shares[time][:, None]
        mixed = share.sqrt() * x + (1 - share).sqrt() * added
        angle = time[:, None] * waves
        return F.mse_loss(net(torch.cat([mixed, angle.sin(), angle.cos()], 1)), added)

    train(place, net, loss, adamw, after=lambda step: average.update_parameters(net))
    place.finish(average)


@model
def flow_matching(place):
    net = layers(WIDTH + 1, 32, WIDTH)

    def loss(step):
        x, start = place.normal(9, WIDTH), noise(place, 9, WIDTH)
        time = place.draw(lambda: torch.empty(9, 1, device=place.device).uniform_())
        return F.mse_loss(
            net(torch.cat([torch.lerp(start, x, time), time], 1)), x - start
        )

    train(place, net, loss)


@model(race=THREADS)
def score_matching(place):
    """Sliced: a product of a Jacobian with a random vector."""
    net = layers(WIDTH, 32, WIDTH, last=nn.Softplus())

    def loss(step):
        x = place.normal(9, WIDTH).requires_grad_()
        sign = place.draw(lambda: torch.randint(0, 2, (9, WIDTH), device=place.device))
        along = sign * 2.0 - 1
        score = net(x)
        (product,) = torch.autograd.grad((score * along).sum(), x, create_graph=True)
        return ((product * along).sum(1) + 0.5 * score.square().sum(1)).mean()

    train(place, net, loss)


@model(race=THREADS)
def energy(place):
    """Langevin steps inside of the loss."""
    net = layers(WIDTH, 16, 1)

    def loss(step):
        x = place.normal(9, WIDTH)
        made = noise(place, 9, WIDTH)
        for _ in range(3):
            made.requires_grad_()
            (slope,) = torch.autograd.grad(net(made).sum(), made)
            made = (made - 0.1 * slope + 0.05 * noise(place, 9, WIDTH)).detach()
        one, two = net(x), net(made)
        return (one - two).mean() + 0.1 * (one**2 + two**2).mean()

    train(place, net, loss)


@model
def coupling(place):
    """A normalising flow: affine couplings and a learned rotation."""
    steps = nn.ModuleList(layers(4, 16, 8) for _ in range(2))
    net = nn.ModuleDict({"steps": steps})
    net.turn = nn.Parameter(torch.eye(WIDTH) + 0.1)

    def loss(step):
        x = place.normal(9, WIDTH)
        x, volume = x @ net.turn, torch.linalg.slogdet(net.turn).logabsdet
        for part in steps:
            kept, moved = x.chunk(2, 1)
            scale, shift = part(kept).chunk(2, 1)
            x = torch.cat([moved * scale.tanh().exp() + shift, kept], 1)
            volume = volume + scale.tanh().sum(1)
        return (
            0.5 * x.square().sum(1) + 0.5 * WIDTH * math.log(2 * math.pi) - volume
        ).mean()

    train(place, net, loss)


@model
def gumbel(place):
    """A choice by the Gumbel trick, hard, with a soft gradient."""
    choose, words = nn.Linear(WIDTH, 6), nn.Linear(6, WIDTH)

    def loss(step):
        x = place.normal(9, WIDTH)
        drawn = place.draw(lambda: torch.empty(9, 6, device=place.device).exponential_())
        soft = ((choose(x) - drawn.log()) / 0.5).softmax(1)
        hard = F.one_hot(soft.argmax(1), 6).float()
        return F.mse_loss(words(hard - soft.detach() + soft), x)

    train(place, nn.ModuleList([choose, words]), loss)


@model
def masked(place):
    """A masked autoencoder: which parts are shown is drawn as a permutation."""
    encode, decode = layers(WIDTH, 16, WIDTH), layers(WIDTH, 16, WIDTH)
    hidden = nn.Parameter(torch.zeros(1, WIDTH))
    net = nn.ModuleList([encode, decode])
    net.hidden = hidden

    def loss(step):
        x = place.normal(12, WIDTH)
        order = place.draw(lambda: torch.randperm(12, device=place.device))
        shown, back = order[:5], order.argsort()
        rows = torch.cat([encode(x[shown]), net.hidden.expand(7, -1)])
        y = decode(rows.index_select(0, back))
        return (y - x)[order[5:]].square().mean()

    train(place, net, loss)


@model
def noisy_layers(place):
    """Weights by a mean and a deviation, drawn at each step."""
    mean, spread = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def loss(step):
        x = place.normal(9, WIDTH)
        drawn = place.draw(lambda: torch.randn_like(mean.weight))
        weight = mean.weight + F.softplus(spread.weight - 3) * drawn
        return F.mse_loss(F.linear(x, weight, mean.bias), x)

    train(place, nn.ModuleList([mean, spread]), loss)


@model
def mixup(place):
    net = layers(WIDTH, 16, 4)

    def loss(step):
        x, label = place.normal(9, WIDTH), F.one_hot(place.whole(4, 9), 4).float()
        order = place.draw(lambda: torch.randperm(9, device=place.device))
        share = place.draw(lambda: torch.rand(9, 1, device=place.device))
        y = net(torch.lerp(x, x[order], share))
        return F.cross_entropy(y, torch.lerp(label, label[order], share))

    train(place, net, loss)


@model(values="to satisfy the constraint")
def policy_gradient(place):
    """Actions are drawn, rewards whitened."""
    policy, value = layers(4, 16, 3), layers(4, 16, 1)

    def loss(step):
        seen = place.normal(20, 4)
        scores = policy(seen)
        action = place.draw(
            lambda: torch.distributions.Categorical(logits=scores).sample()
        )
        reward = torch.where(action == 1, seen[:, 0], seen[:, 1])
        returns = reward.flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        chosen = torch.distributions.Categorical(logits=scores)
        worth = value(seen)[:, 0]
        gain = (returns - worth.detach()) * chosen.log_prob(action)
        return F.smooth_l1_loss(worth, returns) - (gain + 0.01 * chosen.entropy()).mean()

    train(place, nn.ModuleList([policy, value]), loss)


@model
def q_learning(place):
    """A target network, a replay memory on the device, drawn from."""
    net = layers(4, 16, 3)
    target = place.put(layers(4, 16, 3))
    seen, action = place.normal(40, 4), place.whole(3, 40)

    def loss(step):
        rows = place.draw(lambda: torch.randint(0, 39, (16,), device=place.device))
        worth = net(seen[rows]).gather(1, action[rows, None])[:, 0]
        with torch.no_grad():
            wanted = seen[rows, 0] + 0.9 * target(seen[rows + 1]).amax(1)
        return F.huber_loss(worth, wanted)

    def after(step):
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), net.parameters()):
                slow.lerp_(fast, 0.1)

    train(place, net, loss, after=after)
    place.finish(target)

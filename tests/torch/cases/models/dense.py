# SPDX-License-Identifier: Apache-2.0
"""Dense layers, trained in all the ways that people train them."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from .registry import CASTS, STEPS, THREADS, adamw, model, sgd, train

WIDTH = 32


class Block(nn.Module):
    def __init__(self, width=WIDTH, drop=None):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.drop = drop or nn.Identity()

    def forward(self, x):
        return x + self.drop(self.narrow(F.gelu(self.wide(self.norm(x)))))


class Blocks(nn.Module):
    def __init__(self, count=3, width=WIDTH, run=None, drop=None):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, drop) for _ in range(count))
        self.run = run or (lambda block, x: block(x))

    def forward(self, x):
        for block in self.blocks:
            x = self.run(block, x)
        return x


def copying(place, net, rows=64, **options):
    """Learns to say what it hears."""

    def loss(step):
        x = place.normal(rows, WIDTH)
        return F.mse_loss(net(x), x)

    train(place, net, loss, **options)


@model
def mlp(place):
    copying(place, Blocks(), optimizer=adamw)


@model
def perceptron(place):
    net = nn.Sequential(nn.Linear(WIDTH, 64), nn.Tanh(), nn.Linear(64, WIDTH))
    copying(place, net)


@model
def activations(place):
    kinds = [nn.ReLU(), nn.SiLU(), nn.ELU(), nn.Softplus(), nn.Mish(), nn.Hardswish()]
    kinds += [nn.PReLU(), nn.CELU(), nn.LogSigmoid(), nn.Softsign(), nn.GELU("tanh")]
    kinds += [nn.SELU(), nn.Hardtanh(), nn.LeakyReLU(0.2), nn.Tanhshrink(), nn.ReLU6()]
    layers = [layer for kind in kinds for layer in (nn.Linear(WIDTH, WIDTH), kind)]
    copying(place, nn.Sequential(*layers))


@model
def gated(place):
    gate, up, down = nn.Linear(WIDTH, 64), nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
    net = nn.ModuleList([gate, up, down])

    def loss(step):
        x = place.normal(32, WIDTH)
        return F.mse_loss(down(F.silu(gate(x)) * up(x)) + F.glu(torch.cat([x, x], 1)), x)

    train(place, net, loss)


@model
def bilinear(place):
    net = nn.Bilinear(WIDTH, WIDTH, 8)
    train(
        place, net, lambda step: net(place.normal(9, WIDTH), place.normal(9, WIDTH)).std()
    )


@model
def dropout(place):
    class Drop(nn.Module):
        def forward(self, x):
            return place.dropout(x, 0.5)

    copying(place, Blocks(drop=Drop()))


@model
def tied_weights(place):
    net = nn.ModuleDict({"words": nn.Embedding(50, WIDTH), "body": Blocks(2)})

    def loss(step):
        words = place.whole(50, 4, 10)
        scores = net["body"](net["words"](words)) @ net["words"].weight.T
        return F.cross_entropy(scores.flatten(0, 1), words.roll(1, 1).flatten())

    train(place, net, loss, adamw)


@model
def accumulation(place):
    net = place.put(Blocks())
    optimizer = adamw(net.parameters())
    for _ in range(STEPS):
        total = 0
        for _ in range(3):
            x = place.normal(16, WIDTH)
            loss = F.mse_loss(net(x), x) / 3
            loss.backward()
            total += loss.detach()
        place.record(total, net)
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    place.finish(net)


@model
def checkpointed(place):
    copying(place, Blocks(run=lambda b, x: checkpoint(b, x, use_reentrant=False)))


@model
def checkpointed_reentrant(place):
    def run(block, x):
        return checkpoint(block, x.requires_grad_(), use_reentrant=True)

    copying(place, Blocks(run=run))


@model
def checkpointed_in_segments(place):
    layers = nn.Sequential(*(Block() for _ in range(4)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            return checkpoint_sequential(self.layers, 2, x, use_reentrant=False)

    copying(place, Net())


@model
def saved_on_the_host(place):
    net = Blocks()

    def loss(step):
        x = place.normal(64, WIDTH)
        with torch.autograd.graph.save_on_cpu(pin_memory=not place.is_cpu):
            return F.mse_loss(net(x), x)

    train(place, net, loss)


def mixed(place, dtype):
    net = Blocks()

    def loss(step):
        x = place.normal(64, WIDTH)
        with torch.autocast(place.device, dtype):
            y = net(x)
        return F.mse_loss(y.float(), x)

    return net, loss


@model(race=CASTS)
def autocast(place):
    net, loss = mixed(place, torch.bfloat16)
    train(place, net, loss, adamw)


@model(
    race=CASTS,
    values="whether a step is skipped",
)
def scaled_fp16(place):
    net, loss = mixed(place, torch.float16)
    place.put(net)
    optimizer = sgd(net.parameters())
    scaler = torch.amp.GradScaler(place.device, init_scale=2.0**20, growth_interval=1)
    for step in range(STEPS):
        optimizer.zero_grad()
        value = loss(step)
        scaler.scale(value * 50).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        place.record(value, net)
        scaler.step(optimizer)
        scaler.update()
    place.finish(net, torch.tensor(scaler.get_scale()))


@model
def pure_bf16(place):
    net = Blocks().bfloat16()

    def loss(step):
        x = place.normal(64, WIDTH, dtype=torch.bfloat16)
        return F.mse_loss(net(x), x)

    train(place, net, loss, adamw)


@model
def master_weights(place):
    """bf16 for the passes, fp32 for the update."""
    master = place.put(Blocks())
    net = copy.deepcopy(master).bfloat16()
    optimizer = adamw(master.parameters())
    for _ in range(STEPS):
        x = place.normal(64, WIDTH, dtype=torch.bfloat16)
        loss = F.mse_loss(net(x), x)
        loss.backward()
        place.record(loss, net)
        for low, high in zip(net.parameters(), master.parameters()):
            high.grad, low.grad = low.grad.float(), None
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(list(net.parameters()), list(master.parameters()))
    place.finish(master)


@model
def double_precision(place):
    net = Blocks().double()

    def loss(step):
        x = place.normal(16, WIDTH, dtype=torch.float64)
        return F.mse_loss(net(x), x)

    train(place, net, loss)


@model
def moving_average(place):
    net = Blocks()
    ema = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    average = place.put(torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=ema))
    copying(place, net, after=lambda step: average.update_parameters(net))
    place.finish(average)


@model
def own_function(place):
    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, most):
            y = x.clamp(max=most)
            ctx.save_for_backward(x, y)
            ctx.most = most
            return y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * (x < ctx.most) + 0.01 * y, None

    copying(place, Blocks(run=lambda block, x: Clamp.apply(block(x), 1.5)))


@model(race=THREADS)
def gradient_penalty(place):
    net = nn.Sequential(nn.Linear(WIDTH, 64), nn.Softplus(), nn.Linear(64, 1))

    def loss(step):
        x = place.normal(16, WIDTH).requires_grad_()
        y = net(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.mean() + (slope.norm(dim=1) - 1).square().mean()

    train(place, net, loss)


@model
def in_place_views(place):
    net = Blocks(2)

    def loss(step):
        x = place.normal(16, WIDTH)
        y = net(x).clone()
        y[:, ::2].mul_(2)
        y[3:5] = 0
        y.t()[1].add_(x[:, 0])
        y.masked_fill_(x > 1, 0.5).narrow(1, 2, 3).mul_(3)
        y.index_fill_(0, place.whole(16, 2), 0.1)
        return F.mse_loss(y, x)

    train(place, net, loss)


@model
def hooks_of_the_user(place):
    net = Blocks()
    seen = []
    for block in net.blocks:
        block.wide.weight.register_hook(lambda grad: grad.clamp(-0.01, 0.01))
        block.register_full_backward_hook(
            lambda m, gin, gout: seen.append(gout[0].norm())
        )
        block.register_forward_hook(lambda m, args, out: out * 0.9)
    copying(place, net)
    place.finish(torch.stack(seen))


@model
def update_in_backward(place):
    net = place.put(Blocks())
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(STEPS):
        x = place.normal(16, WIDTH)
        loss = F.mse_loss(net(x), x)
        loss.backward()
        place.record(loss)
    place.finish(net)


@model
def frozen_half(place):
    net = Blocks(4)
    for block in net.blocks[:2]:
        block.requires_grad_(False)
    copying(place, net)


@model
def low_rank(place):
    base = Blocks(2).requires_grad_(False)
    down, up = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, WIDTH, bias=False)
    net = nn.ModuleList([base, down, up])
    nn.init.zeros_(up.weight)

    def loss(step):
        x = place.normal(16, WIDTH)
        return F.mse_loss(base(x) + 2 * up(down(x)), x)

    train(place, net, loss)


@model
def normalised_weights(place):
    first = parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH))
    second = parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH))
    copying(place, nn.Sequential(first, nn.ReLU(), second))


@model(bound=2e-6, why="RMSNorm's fused backward by its formula")
def norms(place):
    kinds = [nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH), nn.BatchNorm1d(WIDTH)]
    kinds += [nn.GroupNorm(4, WIDTH), nn.LayerNorm(WIDTH, bias=False)]
    copying(
        place, nn.Sequential(*(k for n in kinds for k in (nn.Linear(WIDTH, WIDTH), n)))
    )


@model
def distillation(place):
    teacher, student = place.put(Blocks(3)), Blocks(1)

    def loss(step):
        x = place.normal(16, WIDTH)
        with torch.inference_mode():
            wanted = teacher(x).softmax(1)
        return F.kl_div(student(x).log_softmax(1), wanted.clone(), reduction="batchmean")

    train(place, student, loss)


@model(race=THREADS)
def two_tasks(place):
    """Gradients of both, weighed by their norms, put together by hand."""
    net = place.put(nn.ModuleDict({"body": Blocks(2), "a": nn.Linear(WIDTH, 3)}))
    parameters = list(net.parameters())
    optimizer = sgd(parameters)
    for _ in range(STEPS):
        x = place.normal(16, WIDTH)
        y = net["body"](x)
        losses = [F.cross_entropy(net["a"](y), place.whole(3, 16)), (y - x).abs().mean()]
        sums = [torch.zeros_like(p) for p in parameters]
        for loss in losses:
            grads = torch.autograd.grad(
                loss, parameters, retain_graph=True, allow_unused=True
            )
            norm = torch.stack([g.norm() for g in grads if g is not None]).norm()
            for total, grad in zip(sums, grads):
                if grad is not None:
                    total += grad / norm
        for parameter, total in zip(parameters, sums):
            parameter.grad = total
        place.record(sum(losses), net)
        optimizer.step()
    place.finish(net)


@model
def side_streams(place):
    """The next batch is copied on a stream of its own, and a branch runs on another."""
    net = place.put(Blocks())
    optimizer = sgd(net.parameters())
    if place.is_cpu:
        for _ in range(STEPS):
            x = place.normal(64, WIDTH)
            y = net.blocks[0](x) + net.blocks[1](x)
            loss = F.mse_loss(net.blocks[2](y), x)
            step_of(place, net, loss, optimizer)
        return place.finish(net)
    copies, branch, main = torch.cuda.Stream(), torch.cuda.Stream(), None
    host = [place.normal(64, WIDTH).cpu().pin_memory() for _ in range(STEPS)]
    main = torch.cuda.current_stream()
    for batch in host:
        with torch.cuda.stream(copies):
            x = batch.to(place.device, non_blocking=True)
        main.wait_stream(copies)
        x.record_stream(main)
        branch.wait_stream(main)
        first = net.blocks[0](x)
        with torch.cuda.stream(branch):
            second = net.blocks[1](x)
        main.wait_stream(branch)
        x.record_stream(branch)
        second.record_stream(main)
        step_of(place, net, F.mse_loss(net.blocks[2](first + second), x), optimizer)
    return place.finish(net)


def step_of(place, net, loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    place.record(loss, net)
    optimizer.step()


@model
def loader_workers(place):
    """A DataLoader that pins memory, and copies that do not block."""
    items = [(torch.full((WIDTH,), float(i)).sin(), i % 5) for i in range(24)]
    loader = torch.utils.data.DataLoader(items, batch_size=8, pin_memory=not place.is_cpu)
    net = place.put(nn.Sequential(Blocks(1), nn.Linear(WIDTH, 5)))
    optimizer = sgd(net.parameters())
    for x, label in loader:
        x = x.to(place.device, non_blocking=True)
        label = label.to(place.device, non_blocking=True)
        step_of(place, net, F.cross_entropy(net(x), label), optimizer)
    place.finish(net)


@model
def scheduled(place):
    net = place.put(Blocks(2))
    optimizer = adamw(net.parameters())
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5)
    for _ in range(STEPS):
        x = place.normal(16, WIDTH)
        step_of(place, net, F.mse_loss(net(x), x), optimizer)
        plan.step()
    place.finish(net)


@model
def saved_and_loaded(place):
    net = place.put(Blocks(2))
    optimizer = adamw(net.parameters())
    for _ in range(STEPS):
        x = place.normal(16, WIDTH)
        step_of(place, net, F.mse_loss(net(x), x), optimizer)
        state = copy.deepcopy([net.state_dict(), optimizer.state_dict()])
        net = place.put(Blocks(2))
        optimizer = adamw(net.parameters())
        net.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
    place.finish(net)


@model
def ragged_batches(place):
    net = Blocks()

    def loss(step):
        x = place.normal((5, 130, 33)[step], WIDTH)
        return F.mse_loss(net(x), x)

    train(place, net, loss)


@model
def evaluated_between(place):
    net = nn.Sequential(Blocks(2), nn.BatchNorm1d(WIDTH))
    seen = []

    def after(step):
        net.eval()
        with torch.no_grad():
            seen.append(net(place.normal(8, WIDTH)).mean())
        net.train()

    copying(place, net, after=after)
    place.finish(torch.stack(seen))

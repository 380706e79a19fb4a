# SPDX-License-Identifier: Apache-2.0
"""Trains models of many habits and prints, for each step of each, what the library says
of memory beside what the model's own storages sum up to.

categories.py CASE...      prints one line of JSON: {case: [[ours, theirs], ...]}

A case is a generator: it yields at the end of each step the tensors that it knows, by
category; those of categories that it does not name are not compared.
"""

import copy
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = 3
WIDTH = 96


def pack():
    return sys.modules["actswap_torch._pack"]


def block_bytes(tensors):
    """What the allocator gives for the storages behind them, each counted once."""
    storages = {}
    pending = list(tensors)
    while pending:
        tensor = pending.pop()
        if tensor.is_sparse:
            pending += [tensor._indices(), tensor._values()]
        elif tensor.is_cuda:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = (storage.nbytes() + 511) // 512 * 512
    return sum(storages.values()) + unsplit(storages)


def unsplit(storages):
    """What of large blocks the allocator did not split off: less than 1 MiB each."""
    if max(storages.values(), default=0) < 1 << 20:
        return 0
    blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"]]
    sizes = {b["address"]: b["size"] for b in blocks}
    rest = {a: sizes[a] - n for a, n in storages.items() if n and sizes[a] != n}
    assert all(0 < n < 1 << 20 for n in rest.values())
    assert all(sizes[a] > 1 << 20 for a in rest)
    return sum(rest.values())


def gradients(model):
    return [p.grad for p in model.parameters() if p.grad is not None]


def state(*optimizers):
    values = [v for o in optimizers for s in o.state.values() for v in s.values()]
    return [v for v in values if isinstance(v, torch.Tensor)]


def model_of(module):
    return [*module.parameters(), *module.buffers()]


class Layer(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


class Net(nn.Module):
    def __init__(self, layers=3, kind=Layer):
        super().__init__()
        self.layers = nn.ModuleList(kind() for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def batch(n=24):
    return torch.randn(n, WIDTH).cuda()


def step(model, optimizer, x, zero=True):
    loss = F.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    known = told(model, optimizer, x)
    if zero:
        optimizer.zero_grad()
    return known


def told(model, optimizer, *inputs):
    """Taken at once, as the tensors may be gone at the next line."""
    return {
        "parameter": block_bytes(model_of(model)),
        "gradient": block_bytes(gradients(model)),
        "optimizer_state": block_bytes(state(optimizer)),
        "input": block_bytes(inputs),
    }, ours()


def ours():
    return pack().stats()["live_by_category"]


def plain():
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        yield step(model, optimizer, batch())


def gpt():
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
    import train_gpt

    arguments, sys.argv[1:] = sys.argv[1:], ["--layers=2", "--vocab=512"]
    options = train_gpt.parse_arguments()
    sys.argv[1:] = arguments
    generator = torch.Generator().manual_seed(0)
    model = train_gpt.make_model(options)
    optimizer = train_gpt.make_optimizer(options, model)
    for _ in range(STEPS):
        tokens, targets = train_gpt.make_batch(options, generator)
        optimizer.zero_grad()
        model(tokens, targets).backward()
        optimizer.step()
        yield told(model, optimizer, tokens, targets)


def targets_apart():
    """The loss is outside of the model, and weights its rows by a mask nobody saves."""
    model = nn.Sequential(Layer(), Layer(), nn.Linear(WIDTH, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        x, y = batch(), torch.randint(0, 10, (24,)).cuda()
        mask = torch.ones(24).cuda()
        loss = (F.cross_entropy(model(x), y, reduction="none") * mask).mean()
        loss.backward()
        optimizer.step()
        yield told(model, optimizer, x, y, mask)
        optimizer.zero_grad()


def accumulation():
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        for _ in range(3):
            x = batch()
            model(x).sum().backward()
        optimizer.step()
        yield told(model, optimizer, x)
        optimizer.zero_grad()


def zeroed():
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        yield step(model, optimizer, batch(), zero=False)
        optimizer.zero_grad(set_to_none=False)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(200, WIDTH)
        self.body = Net(2)
        self.head = nn.Linear(WIDTH, 200, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return F.cross_entropy(
            self.head(self.body(self.embed(tokens[:, :-1]))).flatten(0, 1),
            tokens[:, 1:].flatten(),
        )


def tied():
    model = Tied().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        tokens = torch.randint(0, 200, (4, 17)).cuda()
        model(tokens).backward()
        optimizer.step()
        yield told(model, optimizer, tokens)
        optimizer.zero_grad()


class Lora(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down = nn.Linear(WIDTH, 4, bias=False)
        self.up = nn.Linear(4, WIDTH, bias=False)

    def forward(self, x):
        return torch.relu(self.base(x) + self.up(self.down(x)))


def lora():
    model = Net(kind=Lora).cuda()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    for _ in range(STEPS):
        yield step(model, optimizer, batch())


class Flat(nn.Module):
    """Weights are views of one flat parameter, as in fully sharded training."""

    def __init__(self):
        super().__init__()
        self.flat = nn.Parameter(torch.randn(3 * WIDTH * WIDTH) * 0.01)

    def forward(self, x):
        for weight in self.flat.view(3, WIDTH, WIDTH).unbind():
            x = torch.relu(F.linear(x, weight))
        return x


def flat():
    model = Flat().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        yield step(model, optimizer, batch())


def flat_gradients():
    """Gradients are views of one buffer that was there before, as in buckets."""
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    bucket = torch.zeros(sum(p.numel() for p in model.parameters()), device="cuda")
    offset = 0
    for parameter in model.parameters():
        end = offset + parameter.numel()
        parameter.grad = bucket[offset:end].view_as(parameter)
        offset = end
    for _ in range(STEPS):
        yield step(model, optimizer, batch(), zero=False)
        bucket.zero_()


def averages():
    """A copy of the module, and a list of bare tensors, both updated in place."""
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    average = copy.deepcopy(model)
    bare = [p.detach().clone() for p in model.parameters()]
    for _ in range(STEPS):
        known, _ = step(model, optimizer, batch())
        with torch.no_grad():
            for mean, loose, now in zip(average.parameters(), bare, model.parameters()):
                mean.lerp_(now, 0.1)
                loose.lerp_(now, 0.1)
        known["parameter"] = block_bytes([*model_of(model), *model_of(average), *bare])
        del known["gradient"], known["input"]
        yield known, ours()


class EightBit(torch.optim.Optimizer):
    """Quantised moments with a scale a row, in nested containers."""

    def __init__(self, parameters):
        super().__init__(parameters, {})
        self.table = torch.linspace(-1, 1, 256, device="cuda")

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p]
                if not kept:
                    kept["moment"] = {
                        "codes": torch.zeros_like(p, dtype=torch.uint8),
                        "scale": [torch.ones(p.shape[0], device=p.device)],
                    }
                scale = kept["moment"]["scale"][0]
                scale.copy_(p.grad.reshape(p.shape[0], -1).abs().amax(1))
                kept["moment"]["codes"].copy_(p.grad.abs() * 10)
                p.add_(p.grad, alpha=-0.01)


def eight_bit():
    model = Net().cuda()
    optimizer = EightBit(model.parameters())
    for _ in range(STEPS):
        known, _ = step(model, optimizer, batch(), zero=False)
        moments = [s["moment"] for s in optimizer.state.values()]
        known["optimizer_state"] = block_bytes(
            [optimizer.table, *(m["codes"] for m in moments)]
            + [m["scale"][0] for m in moments]
        )
        del known["input"]
        yield known, ours()
        optimizer.zero_grad()


class Buffered(nn.Module):
    """Batch norm's statistics, a mask, and a table made when it is first needed."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(WIDTH), persistent=False)

    def forward(self, x):
        return self.linear(self.norm(x) * self.mask)


def buffers():
    model = Net(kind=Buffered).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        yield step(model, optimizer, batch())


class Cached(nn.Module):
    """Keeps keys and values: in a buffer, and of the running forward in a list."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 2 * WIDTH)
        self.register_buffer("kept", torch.zeros(24, 2 * WIDTH), persistent=False)

    def forward(self, x, cache):
        pair = self.project(x)
        with torch.no_grad():
            self.kept.copy_(pair)
        cache.append(pair)
        key, value = pair.chunk(2, dim=1)
        return torch.softmax(key, 1) * value


def key_value_cache():
    model = Cached().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        x, cache = batch(), []
        model(x, cache).sum().backward()
        optimizer.step()
        known, now = told(model, optimizer, x)
        known["activation"] = block_bytes(cache)
        yield known, now
        optimizer.zero_grad()


def there_and_back():
    """Weights and moments go to the host and come back between the steps."""
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        yield step(model, optimizer, batch())
        model.cpu()
        model.cuda()
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


class Again(Layer):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=self.reentrant)


def checkpointed():
    for reentrant in (False, True):
        Again.reentrant = reentrant
        model = Net(kind=Again).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(STEPS):
            x = batch().requires_grad_()
            model(x).sum().backward()
            gradient_of_x = [x.grad]
            optimizer.step()
            known, now = told(model, optimizer, x)
            known["gradient"] = block_bytes([*gradients(model), *gradient_of_x])
            yield known, now
            optimizer.zero_grad()
        del x, model, optimizer, gradient_of_x


def two_optimizers():
    model = Net(2).cuda()
    first, second = model.layers
    optimizers = [torch.optim.AdamW(first.parameters())]
    optimizers.append(torch.optim.SGD(second.parameters(), lr=0.1, momentum=0.9))
    for _ in range(STEPS):
        x = batch()
        model(x).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        known, now = told(model, optimizers[0], x)
        known["optimizer_state"] = block_bytes(state(*optimizers))
        yield known, now
        for optimizer in optimizers:
            optimizer.zero_grad()


def sparse():
    model = nn.Sequential(nn.Embedding(200, WIDTH, sparse=True), Layer()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        tokens = torch.randint(0, 200, (64,)).cuda()
        model(tokens).sum().backward()
        optimizer.step()
        known, now = told(model, optimizer, tokens)
        # The gradient's indices are the tokens.
        known["gradient"] -= block_bytes([tokens])
        yield known, now
        optimizer.zero_grad()


def evaluated():
    """Validation between the steps, with a batch and a sum of its own."""
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        with torch.no_grad():
            held = batch(8)
            total = model(held).sum()
        known, _ = step(model, optimizer, batch(), zero=False)
        total.item()
        del known["input"]
        yield known, ours()
        optimizer.zero_grad()


def updated_in_backward():
    """Each gradient is used and freed as soon as it is there."""
    model = Net().cuda()
    sizes = []

    def update(parameter):
        sizes.append(ours()["gradient"])
        with torch.no_grad():
            parameter.add_(parameter.grad, alpha=-0.1)
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for _ in range(STEPS):
        x = batch()
        model(x).sum().backward()
        known = {"parameter": block_bytes(model_of(model)), "gradient": 0}
        yield known, ours()
    # One gradient at a time, each known while it lives.
    assert max(sizes) == WIDTH * WIDTH * 4, sizes
    assert min(sizes) == 512, sizes


CASES = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and getattr(value, "__code__", None)
    and value.__code__.co_flags & 32
}


def main():
    told_of = {}
    for name in sys.argv[1:]:
        torch.manual_seed(0)
        told_of[name] = [[now, known] for known, now in CASES[name]()]
    print(json.dumps(told_of))


if __name__ == "__main__":
    main()

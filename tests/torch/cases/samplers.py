# SPDX-License-Identifier: Apache-2.0
"""Random numbers of the device beside the public algorithm, written again in NumPy.

python samplers.py CHECK   prints the check's result as JSON in its last line

Philox4x32-10 is of Salmon et al., SC 2011; which thread draws which word, and how far the
offset moves, of PyTorch's ATen/native/cuda/DistributionTemplates.h.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

CUDA = "cuda"
SEED = 1234567890123
# More than the threads of a launch, and more than four numbers for each.
SIZES = (1, 10, 4097, 300_001, 1_500_000)
WAYS = ("plain", "reentrant", "not reentrant")
KINDS = [(outer, inner) for outer in WAYS for inner in WAYS]


def philox(seed: int, thread: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Four words for each pair of a thread and a block, as uint32."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    thread, block = thread.astype(np.uint64), block.astype(np.uint64)
    counter = [block & mask, block >> shift, thread & mask, thread >> shift]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        left = counter[0] * np.uint64(0xD2511F53)
        right = counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (right >> shift) ^ counter[1] ^ np.uint64(key[0]),
            right & mask,
            (left >> shift) ^ counter[3] ^ np.uint64(key[1]),
            left & mask,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, axis=-1)


def threads_of(n: int) -> int:
    card = torch.cuda.get_device_properties(0)
    most = card.multi_processor_count * (card.max_threads_per_multi_processor // 256)
    return 256 * min(most, (n + 255) // 256)


def words(n: int, offset: int = 0) -> np.ndarray:
    """The word of each element where a thread uses all four of a block."""
    threads = threads_of(n)
    i = np.arange(n)
    turn = i // threads
    four = philox(SEED, i % threads, turn // 4 + offset // 4)
    return four[np.arange(n), turn % 4]


def long_words(n: int) -> np.ndarray:
    """The same where an element takes two of them."""
    threads = threads_of(n)
    i = np.arange(n)
    turn = i // threads
    four = philox(SEED, i % threads, turn // 2)
    k = turn % 2 * 2
    return (four[i, k] << np.uint64(32)) | four[i, k + 1]


def uniform(word: np.ndarray) -> np.ndarray:
    return word.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)


def empty(n: int) -> torch.Tensor:
    return torch.empty(n, device=CUDA)


def normal(n: int) -> np.ndarray:
    threads = threads_of(n)
    i = np.arange(n)
    turn = i // threads
    four = philox(SEED, i % threads, turn // 4)
    pair = turn % 4 // 2 * 2
    radius = np.sqrt(-2 * np.log(uniform(four[i, pair]).astype(np.float64)))
    angle = 2 * np.pi * uniform(four[i, pair + 1]).astype(np.float64)
    return radius * np.where(turn % 2 == 1, np.cos(angle), np.sin(angle))


Sampler = Tuple[Callable[[int], torch.Tensor], Callable[[int], np.ndarray]]

# What ours and the algorithm's numbers are, and whether they must agree to the bit.
EXACT: Dict[str, Sampler] = {
    "rand": (
        lambda n: torch.rand(n, device=CUDA),
        lambda n: np.where(uniform(words(n)) == 1, 0, uniform(words(n))),
    ),
    "randint": (
        lambda n: torch.randint(-5, 1000, (n,), device=CUDA),
        lambda n: words(n).astype(np.int64) % 1005 - 5,
    ),
    "randint, 64 bits": (
        lambda n: torch.randint(0, 1 << 40, (n,), device=CUDA),
        lambda n: (long_words(n) % np.uint64(1 << 40)).astype(np.int64),
    ),
    "random_ int32": (
        lambda n: torch.empty(n, dtype=torch.int32, device=CUDA).random_(),
        lambda n: (words(n) % np.uint64(1 << 31)).astype(np.int32),
    ),
    "bernoulli_": (
        lambda n: empty(n).bernoulli_(0.3),
        lambda n: uniform(words(n)) < np.float32(0.3),
    ),
    "geometric_": (
        lambda n: empty(n).geometric_(0.5),
        lambda n: np.ceil(np.log(uniform(words(n))) / np.log1p(np.float32(-0.5))),
    ),
    "bernoulli": (
        lambda n: torch.bernoulli(torch.full((n,), 0.25, device=CUDA)),
        lambda n: uniform(
            philox(SEED, np.arange(n) // 4, np.zeros(n))[np.arange(n), np.arange(n) % 4]
        )
        <= 0.25,
    ),
    "rows": (
        lambda n: torch.empty(4, n, device=CUDA)[:, : (n + 1) // 2].uniform_().flatten(),
        lambda n: np.where(
            uniform(words(4 * ((n + 1) // 2))) == 1, 0, uniform(words(4 * ((n + 1) // 2)))
        ),
    ),
    "columns": (
        lambda n: torch.empty(n, 2, device=CUDA).t().uniform_().t().flatten(),
        lambda n: np.where(uniform(words(2 * n)) == 1, 0, uniform(words(2 * n))),
    ),
}
CLOSE: Dict[str, Sampler] = {
    "randn": (lambda n: torch.randn(n, device=CUDA), normal),
    "normal": (
        lambda n: torch.normal(torch.ones(n, device=CUDA)),
        lambda n: normal(n) + 1,
    ),
    "log_normal_": (
        lambda n: empty(n).log_normal_(0, 0.5),
        lambda n: np.exp(normal(n) * 0.5),
    ),
    "exponential_": (
        lambda n: empty(n).exponential_(2.0),
        lambda n: np.maximum(-np.log(uniform(words(n))), np.float32(2**-24)) / 2,
    ),
    "cauchy_": (
        lambda n: empty(n).cauchy_().atan(),
        lambda n: np.pi * (uniform(words(n)).astype(np.float64) - 0.5),
    ),
}


def numbers() -> Any:
    """By sampler: the largest difference, or for exact ones how many differ."""
    found = {}
    for name, (ours, theirs) in {**EXACT, **CLOSE}.items():
        worst = 0.0
        for n in SIZES:
            torch.cuda.manual_seed(SEED)
            drawn = ours(n).cpu().numpy().astype(np.float64)
            expected = theirs(n).astype(np.float64)
            assert drawn.shape == expected.shape, name
            if name in EXACT:
                worst += float((drawn != expected).sum())
            else:
                scale = np.maximum(1, np.abs(expected))
                worst = max(worst, float((np.abs(drawn - expected) / scale).max()))
        found[name] = worst
    return found


def multinomial() -> Any:
    """Each sample as the algorithm takes it from the same numbers."""
    chances = torch.arange(1.0, 9.0, device=CUDA).repeat(5, 1)
    torch.cuda.manual_seed(SEED)
    one = torch.multinomial(chances, 1)
    torch.cuda.manual_seed(SEED)
    some = torch.multinomial(chances, 3)
    torch.cuda.manual_seed(SEED)
    again = torch.multinomial(chances, 6, replacement=True)
    ratio = chances.cpu().numpy() / -np.log(uniform(words(40)).reshape(5, 8))
    order = np.argsort(-ratio, axis=1)
    thread = np.arange(5)[:, None] * 128 + np.arange(6)[None, :]
    drawn = uniform(philox(SEED, thread, np.zeros_like(thread))[..., 0])
    bounds = np.arange(1.0, 9.0).cumsum() / 36
    return [
        (one.cpu().numpy() == order[:, :1]).all().item(),
        (some.cpu().numpy() == order[:, :3]).all().item(),
        (again.cpu().numpy() == np.searchsorted(bounds, drawn)).all().item(),
    ]


def offsets() -> List[int]:
    """Where the generator stands after each of many calls."""
    torch.cuda.init()
    own = torch.cuda.default_generators[0]
    torch.cuda.manual_seed(SEED)
    found = []
    x = torch.ones(64, 96, device=CUDA)
    calls: List[Callable[[], Any]] = [
        *(lambda of=of: nested(*of) for of in KINDS),  # type: ignore[misc]
        *(lambda n=n: torch.rand(n, device=CUDA) for n in SIZES),  # type: ignore[misc]
        lambda: torch.randint(0, 1 << 40, (1_500_000,), device=CUDA),
        lambda: torch.empty(1_500_000, dtype=torch.float64, device=CUDA).uniform_(),
        lambda: torch.bernoulli(x * 0.5),
        lambda: torch.randperm(100, device=CUDA),
        lambda: torch.randperm(100_000, device=CUDA),
        lambda: torch.multinomial(x, 1),
        lambda: torch.multinomial(x, 200, replacement=True),
        lambda: F.dropout(x, 0.5),
        lambda: F.dropout(torch.ones(1_500_000, device=CUDA), 0.5),
        lambda: torch.poisson(x),
        lambda: F.rrelu(x, training=True),
        lambda: F.gumbel_softmax(x),
        lambda: F.scaled_dot_product_attention(
            *(x.view(2, 4, 48, 16),) * 3, dropout_p=0.1
        ),
    ]
    for call in calls:
        call()
        found.append(own.get_offset())
    return found


def policy() -> Any:
    """By size: how far `rand` moves the offset, and how far the policy says."""
    found = []
    torch.cuda.init()
    own = torch.cuda.default_generators[0]
    for n in SIZES:
        torch.cuda.manual_seed(SEED)
        torch.rand(n, device=CUDA)
        found.append([own.get_offset(), ((n - 1) // (threads_of(n) * 4) + 1) * 4])
    return found


def states() -> Any:
    """Ways to keep a state and to come back to it."""

    def draw() -> torch.Tensor:
        return torch.rand(5000, device=CUDA)

    torch.cuda.manual_seed(SEED)
    state = torch.cuda.get_rng_state()
    first = draw()
    torch.cuda.set_rng_state(state)
    found = {"set_rng_state": torch.equal(first, draw())}
    torch.cuda.set_rng_state(state)
    with torch.random.fork_rng(devices=[0]):
        draw()
    found["fork_rng"] = torch.equal(first, draw())
    own = torch.Generator(CUDA).manual_seed(SEED)
    found["Generator"] = torch.equal(
        first, torch.rand(5000, device=CUDA, generator=own)
    ) and torch.equal(
        torch.rand(9, device=CUDA, generator=own.clone_state()),
        torch.rand(9, device=CUDA, generator=own),
    )
    own.set_offset(0)
    found["set_offset"] = torch.equal(first, torch.rand(5000, device=CUDA, generator=own))
    kept = own.get_state()
    file = io.BytesIO()
    torch.save({"own": kept, "all": torch.cuda.get_rng_state_all()}, file)
    first = draw()
    file.seek(0)
    read = torch.load(file)
    torch.cuda.set_rng_state_all(read["all"])
    found["saved"] = torch.equal(first, draw()) and torch.equal(read["own"], kept)
    found["get_state"] = torch.equal(
        torch.randn(7, device=CUDA, generator=own),
        torch.randn(7, device=CUDA, generator=torch.Generator(CUDA).set_state(kept)),
    )
    return found


def devices() -> Any:
    """Of two: each has a generator of its own."""

    def draw(device: int) -> torch.Tensor:
        return torch.rand(50, device=f"{CUDA}:{device}").cpu()

    torch.manual_seed(SEED)
    states = torch.cuda.get_rng_state_all()
    one, two = draw(0), draw(1)
    found = {"of one seed the same": torch.equal(one, two)}
    with torch.random.fork_rng():
        draw(0), draw(1)
    after = [draw(0), draw(1)]
    torch.cuda.set_rng_state_all(states)
    found["get_rng_state_all"] = torch.equal(one, draw(0)) and torch.equal(two, draw(1))
    found["fork_rng of all"] = torch.equal(after[0], draw(0))
    torch.cuda.manual_seed(SEED + 1)
    found["manual_seed of the current one"] = torch.equal(after[1], draw(1))
    torch.cuda.manual_seed_all(SEED)
    with torch.random.fork_rng(devices=[1]):
        draw(0), draw(1)
    found["fork_rng of one"] = torch.equal(two, draw(1)) and not torch.equal(one, draw(0))
    return found


def block(t: torch.Tensor) -> torch.Tensor:
    return F.dropout(F.dropout(t, 0.5).square() * torch.rand_like(t), 0.1)


def again(run: Callable[..., torch.Tensor], t: torch.Tensor, kind: str) -> torch.Tensor:
    if kind == "plain":
        return run(t)
    return checkpoint(run, t, use_reentrant=kind == "reentrant")


def nested(outer: str, inner: str) -> torch.Tensor:
    """The gradient through two blocks, one recomputed within the other's recompute."""
    x = torch.ones(64, 500, device=CUDA, requires_grad=True)
    again(lambda t: again(block, block(t), inner), x, outer).sum().backward()
    assert x.grad is not None
    return x.grad


def checkpoints() -> Any:
    """Gradients through dropout are the same with checkpoints of either kind."""
    found = {}
    torch.cuda.manual_seed(SEED)
    plain = nested("plain", "plain")
    for outer, inner in KINDS:
        torch.cuda.manual_seed(SEED)
        found[f"{outer} {inner}"] = torch.equal(plain, nested(outer, inner))
    found["it drops"] = plain.count_nonzero().item() not in (0, plain.numel())
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))

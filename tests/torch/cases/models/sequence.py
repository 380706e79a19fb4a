# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks, attention, and other ways through a sequence."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .registry import adamw, model, sgd, train

WIDTH, LENGTH, WORDS = 16, 12, 40

ROUNDING = 2e-6
BF16 = 2e-2
FORMULA = "fused attention by its formula: fp32's rounding, a few times"
FUSED = "a fused cell's backward by its formula; the CPU has other operators there"
LOW = "fused attention by its formula: rounding of bf16's 8 bits, a few times"


def recurrent(place, net, packed=False, state=False):
    head = nn.Linear(net.hidden_size * (2 if net.bidirectional else 1), WIDTH)

    def loss(step):
        x = place.normal(5, LENGTH, WIDTH)
        if not net.batch_first:
            x = x.transpose(0, 1)
        given = x
        if packed:
            lengths = torch.tensor([12, 10, 7, 7, 2])
            given = nn.utils.rnn.pack_padded_sequence(x, lengths, net.batch_first)
        y, last = net(given)
        if packed:
            y, _ = nn.utils.rnn.pad_packed_sequence(y, net.batch_first)
        last = last[0] if isinstance(last, tuple) else last
        return F.mse_loss(head(y), x) + last.square().mean()

    train(place, nn.ModuleList([net, head]), loss)


@model
def rnn(place):
    recurrent(place, nn.RNN(WIDTH, 20, nonlinearity="relu"))


@model
def lstm(place):
    recurrent(
        place, nn.LSTM(WIDTH, 20, num_layers=2, bidirectional=True, batch_first=True)
    )


@model
def lstm_projected(place):
    recurrent(place, nn.LSTM(WIDTH, 16, proj_size=0, bias=False))


@model
def lstm_packed(place):
    recurrent(place, nn.LSTM(WIDTH, 20, batch_first=True), packed=True)


@model
def gru(place):
    recurrent(place, nn.GRU(WIDTH, 20, num_layers=2))


@model
def gru_packed(place):
    recurrent(place, nn.GRU(WIDTH, 20, bidirectional=True, batch_first=True), packed=True)


@model(bound=ROUNDING, why=FUSED)
def lstm_cells(place):
    """A cell in a loop, the gradient cut half way."""
    cell, head = nn.LSTMCell(WIDTH, 20), nn.Linear(20, WIDTH)

    def loss(step):
        x = place.normal(LENGTH, 5, WIDTH)
        state, total = None, 0
        for i in range(LENGTH - 1):
            state = cell(x[i], state)
            if i == LENGTH // 2:
                state = tuple(s.detach() for s in state)
            total = total + F.mse_loss(head(state[0]), x[i + 1])
        return total / LENGTH

    train(place, nn.ModuleList([cell, head]), loss)


@model(bound=ROUNDING, why=FUSED)
def gru_cells(place):
    cell, plain = nn.GRUCell(WIDTH, 20), nn.RNNCell(20, WIDTH)

    def loss(step):
        x = place.normal(LENGTH, 5, WIDTH)
        state = torch.zeros(5, 20, device=place.device)
        rows = []
        for row in x.unbind():
            state = cell(row, state)
            rows.append(plain(state))
        return F.mse_loss(torch.stack(rows), x)

    train(place, nn.ModuleList([cell, plain]), loss)


@model(bound=ROUNDING, why=FUSED)
def translation(place):
    """An encoder, a decoder with attention, padding left out of the loss."""
    words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
    encoder, decoder = nn.GRU(WIDTH, WIDTH, batch_first=True), nn.GRUCell(
        2 * WIDTH, WIDTH
    )
    head = nn.Linear(WIDTH, WORDS)

    def loss(step):
        source, target = place.whole(WORDS, 4, 9), place.whole(WORDS, 4, 7)
        target[1, 4:] = 0
        read, state = encoder(words(source))
        state, total = state[0], 0
        for i in range(6):
            weights = torch.einsum("bsw,bw->bs", read, state).softmax(1)
            seen = torch.einsum("bsw,bs->bw", read, weights)
            state = decoder(torch.cat([words(target[:, i]), seen], 1), state)
            total = total + F.cross_entropy(head(state), target[:, i + 1], ignore_index=0)
        return total

    train(place, nn.ModuleList([words, encoder, decoder, head]), loss)


@model
def speech(place):
    """CTC over frames."""
    net = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 11))

    def loss(step):
        frames = net(place.normal(20, 3, WIDTH)).log_softmax(2)
        wanted = place.whole(10, 3, 6) + 1
        lengths = torch.tensor([20, 17, 15]), torch.tensor([6, 4, 5])
        return F.ctc_loss(frames, wanted, *lengths, zero_infinity=True)

    train(place, net, loss)


@model
def dilated_causal(place):
    layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 2, dilation=2**i) for i in range(3))

    def loss(step):
        x = place.normal(4, WIDTH, LENGTH)
        y = x
        for i, layer in enumerate(layers):
            y = y + F.relu(layer(F.pad(y, (2**i, 0))))
        return F.mse_loss(y[..., :-1], x[..., 1:])

    train(place, layers, loss)


class Attention(nn.Module):
    """Self-attention, with its mixing given."""

    def __init__(self, mix, heads=4, groups=4):
        super().__init__()
        self.heads, self.groups, self.mix = heads, groups, mix
        size = WIDTH // heads
        self.project = nn.Linear(WIDTH, (heads + 2 * groups) * size)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        size = WIDTH // self.heads
        parts = self.project(x).split(
            [self.heads * size, self.groups * size, self.groups * size], dim=2
        )
        query, key, value = (p.unflatten(2, (-1, size)).transpose(1, 2) for p in parts)
        return x + self.out(self.mix(query, key, value).transpose(1, 2).flatten(2))


def attending(place, mix, dtype=torch.float32, optimizer=sgd, **options):
    net = nn.ModuleList(Attention(mix, **options) for _ in range(2)).to(dtype)

    def loss(step):
        x = place.normal(3, LENGTH, WIDTH, dtype=dtype)
        y = x
        for layer in net:
            y = layer(y)
        return F.mse_loss(y[:, :-1], x[:, 1:])

    train(place, net, loss, optimizer)


def eager(query, key, value):
    size = query.shape[2]
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
    future = torch.ones(size, size, dtype=torch.bool, device=query.device).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(3) @ value


@model
def attention_eager(place):
    attending(place, eager)


@model
def attention_eager_dropout(place):
    def mix(query, key, value):
        scores = (query @ key.transpose(2, 3)).softmax(3)
        return place.dropout(scores, 0.5) @ value

    attending(place, mix)


@model
def attention_causal(place):
    attending(place, lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True))


@model
def attention_causal_bf16(place):
    attending(
        place,
        lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True),
        torch.bfloat16,
        heads=2,
        groups=2,
    )


@model
def attention_mask(place):
    mask = place.whole(2, 3, 1, LENGTH, LENGTH).bool()
    mask[..., 0] = True
    attending(place, lambda *qkv: F.scaled_dot_product_attention(*qkv, attn_mask=mask))


@model(bound=ROUNDING, why=FORMULA)
def attention_bias(place):
    """A learned bias by distance."""
    bias = nn.Parameter(torch.zeros(4, 2 * LENGTH - 1))
    place_of = torch.arange(LENGTH)
    distance = (place_of[:, None] - place_of[None] + LENGTH - 1).to(place.device)
    net = Attention(None)
    net.bias = bias

    def mix(*qkv):
        return F.scaled_dot_product_attention(*qkv, attn_mask=net.bias[:, distance][None])

    net.mix = mix

    def loss(step):
        x = place.normal(3, LENGTH, WIDTH)
        return F.mse_loss(net(x), x)

    train(place, net, loss)


@model(bound=ROUNDING, why=FORMULA)
def attention_grouped(place):
    def mix(*qkv):
        return F.scaled_dot_product_attention(*qkv, is_causal=True, enable_gqa=True)

    attending(place, mix, groups=2)


@model(bound=BF16, why=LOW)
def attention_grouped_bf16(place):
    def mix(*qkv):
        return F.scaled_dot_product_attention(*qkv, is_causal=True, enable_gqa=True)

    attending(place, mix, torch.bfloat16, groups=2)


@model(bound=ROUNDING, why=FORMULA)
def attention_dropout(place):
    """On the CPU by the formula, with the mask that the device's call drops by."""

    def mix(query, key, value):
        def dropped():
            eye = torch.eye(LENGTH, device=query.device).expand(3, 4, -1, -1)
            wide = [F.pad(t, (0, LENGTH - t.shape[3])) for t in (query, key)]
            scale = 1 / math.sqrt(query.shape[3])
            return (
                F.scaled_dot_product_attention(*wide, eye, dropout_p=0.5, scale=scale)
                != 0
            )

        kept = place.redraw(dropped)
        if not place.is_cpu:
            return F.scaled_dot_product_attention(query, key, value, dropout_p=0.5)
        scores = (query @ key.transpose(2, 3) / math.sqrt(query.shape[3])).softmax(3)
        return (scores * kept * 2) @ value

    attending(place, mix)


@model
def rotary(place):
    turn = torch.arange(LENGTH)[:, None] / 10.0 ** torch.arange(2)
    cos, sin = turn.cos().to(place.device), turn.sin().to(place.device)

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    attending(place, lambda query, key, value: eager(rotate(query), rotate(key), value))


@model
def attention_linear(place):
    """Kernelised, causal by a running sum."""

    def mix(query, key, value):
        query, key = F.elu(query) + 1, F.elu(key) + 1
        sums = torch.einsum("bhsk,bhsv->bhskv", key, value).cumsum(2)
        below = torch.einsum("bhsk,bhsk->bhs", query, key.cumsum(2))
        return torch.einsum("bhsk,bhskv->bhsv", query, sums) / below[..., None]

    attending(place, mix)


@model
def attention_module(place):
    net = nn.MultiheadAttention(WIDTH, 4, batch_first=True, add_bias_kv=True)

    def loss(step):
        x = place.normal(3, LENGTH, WIDTH)
        padding = torch.zeros(3, LENGTH, dtype=torch.bool, device=place.device)
        padding[0, 8:] = True
        y, weights = net(x, x, x, key_padding_mask=padding)
        return F.mse_loss(y, x) + weights.square().mean()

    train(place, net, loss)


@model
def transformer(place):
    net = nn.Transformer(WIDTH, 4, 2, 2, 32, dropout=0.0, batch_first=True)

    def loss(step):
        source, target = place.normal(3, 9, WIDTH), place.normal(3, 7, WIDTH)
        mask = nn.Transformer.generate_square_subsequent_mask(7, device=place.device)
        return F.mse_loss(net(source, target, tgt_mask=mask, tgt_is_causal=True), target)

    train(place, net, loss, adamw)


@model
def encoder(place):
    """nn.TransformerEncoder, norm first, then its fast path in evaluation."""
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, 0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    seen = []

    def after(step):
        net.eval()
        with torch.no_grad():
            seen.append(net(place.normal(2, LENGTH, WIDTH)).mean())
        net.train()

    def loss(step):
        x = place.normal(3, LENGTH, WIDTH)
        return F.mse_loss(net(x), x)

    train(place, net, loss, after=after)
    place.finish(torch.stack(seen))


@model(values="aten::equal")
def encoder_with_padding(place):
    """Evaluated without the padding: as a strided nested tensor."""
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, 0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, 2)
    lengths = torch.tensor([[LENGTH], [2], [4]])
    padding = (torch.arange(LENGTH) >= lengths).to(place.device)
    seen = []

    def after(step):
        net.eval()
        with torch.no_grad():
            x = place.normal(3, LENGTH, WIDTH)
            seen.append(net(x, src_key_padding_mask=padding).square().mean())
        net.train()

    def loss(step):
        x = place.normal(3, LENGTH, WIDTH)
        return F.mse_loss(net(x, src_key_padding_mask=padding), x)

    train(place, net, loss, after=after)
    place.finish(torch.stack(seen))


@model
def strided_nested(place):
    """Sentences of different lengths as one buffer, with a row for each sentence."""
    norm, mix = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
    net = nn.Sequential(norm, mix)
    lengths = [5, 2, 7]

    def loss(step):
        rows = [place.normal(length, WIDTH) for length in lengths]
        gates, shifts = place.normal(2, len(rows), 1, WIDTH)
        if place.is_cpu:  # which has no operator for it
            gates, shifts = (
                torch.nested.nested_tensor(
                    [row.expand(length, -1) for row, length in zip(each, lengths)]
                )
                for each in (gates, shifts)
            )
        x = torch.nested.as_nested_tensor(rows) * gates
        return (net(x + shifts)).to_padded_tensor(0.0).square().mean()

    train(place, net, loss)


@model
def state_space(place):
    """A diagonal state space as a convolution by fft: complex parameters and kernels."""
    states = 8
    log_step = nn.Parameter(torch.linspace(-3, -1, WIDTH))
    real = nn.Parameter(torch.full((WIDTH, states), -0.5).log().nan_to_num(-0.7))
    imaginary = nn.Parameter(math.pi * torch.arange(states).repeat(WIDTH, 1))
    mixing = nn.Parameter(torch.ones(WIDTH, states, dtype=torch.complex64) / states)
    net = nn.ParameterList([log_step, real, imaginary, mixing])

    def loss(step):
        log_step, real, imaginary, mixing = net
        x = place.normal(3, WIDTH, LENGTH)
        poles = torch.complex(-real.exp(), imaginary) * log_step.exp()[:, None]
        powers = (poles[..., None] * torch.arange(LENGTH, device=place.device)).exp()
        kernel = 2 * torch.einsum("wn,wnl->wl", mixing, powers).real
        size = 2 * LENGTH
        product = torch.fft.rfft(x, n=size) * torch.fft.rfft(kernel, n=size)
        y = torch.fft.irfft(product, n=size)[..., :LENGTH]
        return F.mse_loss(F.gelu(y)[..., :-1], x[..., 1:])

    train(place, net, loss)


@model
def selective_scan(place):
    """A gated recurrence whose gates depend on the input, step by step."""
    gates, head = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def loss(step):
        x = place.normal(3, LENGTH, WIDTH)
        forget, write = gates(x).chunk(2, dim=2)
        forget, state, rows = forget.sigmoid(), torch.zeros_like(x[:, 0]), []
        for i in range(LENGTH):
            state = torch.lerp(write[:, i], state, forget[:, i])
            rows.append(state)
        return F.mse_loss(head(torch.stack(rows, 1)), x)

    train(place, nn.ModuleList([gates, head]), loss)


@model
def random_field(place):
    """The forward algorithm of a linear chain: logsumexp over transitions."""
    scores, moves = nn.Linear(WIDTH, 5), nn.Parameter(torch.zeros(5, 5))
    net = nn.ModuleDict({"scores": scores})
    net.moves = moves

    def loss(step):
        x, tags = place.normal(LENGTH, 3, WIDTH), place.whole(5, LENGTH, 3)
        emitted = net["scores"](x)
        alpha = emitted[0]
        gold = emitted.gather(2, tags[..., None]).sum((0, 2))
        gold = gold + net.moves[tags[:-1], tags[1:]].sum(0)
        for row in emitted[1:]:
            alpha = torch.logsumexp(alpha[:, :, None] + net.moves, 1) + row
        return (alpha.logsumexp(1) - gold).mean()

    train(place, net, loss)


@model
def jagged(place):
    """Sentences of different lengths as one nested tensor."""
    net = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))

    def loss(step):
        rows = [place.normal(n, WIDTH) for n in (3, 7, 5)]
        x = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
        return (net(x) - x).values().square().mean()

    train(place, net, loss)


@model
def generation(place):
    """Greedy decoding with a cache between the steps of training."""
    words, layer = nn.Embedding(WORDS, WIDTH), Attention(eager)
    net = nn.ModuleList([words, layer])
    said = []

    def after(step):
        with torch.no_grad():
            text = torch.zeros(2, 1, dtype=torch.long, device=place.device)
            for _ in range(4):
                scores = layer(words(text))[:, -1] @ words.weight.T
                text = torch.cat([text, scores.argmax(1, keepdim=True)], 1)
            said.append(text)

    def loss(step):
        text = place.whole(WORDS, 3, LENGTH)
        scores = layer(words(text)) @ words.weight.T
        return F.cross_entropy(scores[:, :-1].flatten(0, 1), text[:, 1:].flatten())

    train(place, net, loss, after=after)
    place.finish(torch.stack(said))

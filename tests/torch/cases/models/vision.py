# SPDX-License-Identifier: Apache-2.0
"""Images: convolutions of all kinds, norms, resampling, networks with skips."""

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASTS, adamw, model, sgd, train

SIDE = 12


def classify(
    place, net, channels=3, optimizer=sgd, layout=torch.contiguous_format, dims=2
):
    """Five classes from what the network makes of an image."""

    def loss(step):
        x = place.normal(4, channels, *[SIDE] * dims)
        y = net(x.contiguous(memory_format=layout))
        return F.cross_entropy(y.flatten(2).mean(2)[:, :5], place.whole(5, 4))

    train(place, net.to(memory_format=layout), loss, optimizer)


@model
def convolution(place):
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 5, 3, bias=False)
    )
    classify(place, net)


@model
def convolution_kinds(place):
    """Grouped, depthwise, dilated, 1 x 1, uneven, padded in every way."""
    layers = [nn.Conv2d(3, 8, (3, 1), padding="same"), nn.Conv2d(8, 8, 3, groups=8)]
    layers += [nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 8, 1, groups=2)]
    for mode in ("reflect", "replicate", "circular", "zeros"):
        layers += [nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, padding_mode=mode)]
    classify(place, nn.Sequential(*layers))


@model
def channels_last(place):
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(8, 8, 3, groups=8), nn.ReLU(), nn.Conv2d(8, 5, 1)]
    classify(place, nn.Sequential(*layers), layout=torch.channels_last)


@model
def transposed(place):
    layers = [nn.Conv2d(3, 6, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(6, 6, 4, 2, 1)]
    layers += [nn.ReLU(), nn.ConvTranspose2d(6, 5, 3, 2, output_padding=1, dilation=2)]
    classify(place, nn.Sequential(*layers))


@model
def volumes(place):
    layers = [nn.Conv3d(2, 4, 3), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2)]
    layers += [nn.ConvTranspose3d(4, 5, 2, 2), nn.AvgPool3d(2)]
    classify(place, nn.Sequential(*layers), channels=2, dims=3)


@model
def sound(place):
    layers = [nn.Conv1d(2, 8, 5, 2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2)]
    layers += [nn.ConvTranspose1d(8, 5, 4, 2), nn.AvgPool1d(2)]
    classify(place, nn.Sequential(*layers), channels=2, dims=1)


class Residual(nn.Module):
    def __init__(self, narrow, wide, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(narrow, wide, 3, stride, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(inplace=True),
            nn.Conv2d(wide, wide, 3, 1, 1, bias=False),
            nn.BatchNorm2d(wide),
        )
        self.skip = nn.Conv2d(narrow, wide, 1, stride, bias=False)

    def forward(self, x):
        return F.relu_(self.body(x) + self.skip(x))


@model
def resnet(place):
    layers = nn.Sequential(Residual(3, 8), Residual(8, 8, 2), Residual(8, 5))
    classify(place, layers, optimizer=adamw)


@model(race=CASTS)
def resnet_autocast(place):
    net = nn.Sequential(Residual(3, 8), Residual(8, 5, 2))

    def loss(step):
        with torch.autocast(place.device, torch.bfloat16):
            y = net(place.normal(4, 3, SIDE, SIDE)).mean((2, 3))
        return F.cross_entropy(y.float(), place.whole(5, 4))

    train(place, net, loss)


@model
def unet(place):
    def pair(narrow, wide):
        return nn.Sequential(
            nn.Conv2d(narrow, wide, 3, 1, 1), nn.GroupNorm(1, wide), nn.SiLU()
        )

    down = nn.ModuleList([pair(3, 8), pair(8, 16)])
    up = nn.ModuleList([nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)])
    join = nn.ModuleList([pair(24, 8), pair(12, 3)])
    net = nn.ModuleList([down, up, join])

    def loss(step):
        x = place.normal(2, 3, SIDE, SIDE)
        y, skips = x, []
        for layer in down:
            y = layer(y)
            skips.append(y)
            y = F.max_pool2d(y, 2)
        for larger, layer in zip(up, join):
            y = layer(torch.cat([larger(y), skips.pop()], 1))
        return F.mse_loss(y, x)

    train(place, net, loss)


@model
def norms_of_images(place):
    kinds = [nn.BatchNorm2d(8), nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True)]
    kinds += [nn.GroupNorm(1, 8), nn.InstanceNorm2d(8), nn.LocalResponseNorm(3)]
    kinds += [
        nn.BatchNorm2d(8, affine=False),
        nn.BatchNorm2d(8, track_running_stats=False),
    ]
    layers = [nn.Conv2d(3, 8, 1)]
    layers += [layer for kind in kinds for layer in (kind, nn.Conv2d(8, 8, 1))]
    classify(place, nn.Sequential(*layers))


@model
def frozen_batch_norm(place):
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 5, 1)
    )
    net[1].eval()
    classify(place, net)


@model
def convnext(place):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.near = nn.Conv2d(8, 8, 7, padding=3, groups=8)
            self.norm, self.scale = nn.LayerNorm(8), nn.Parameter(torch.full((8,), 0.1))
            self.wide, self.narrow = nn.Linear(8, 32), nn.Linear(32, 8)

        def forward(self, x):
            y = self.norm(self.near(x).permute(0, 2, 3, 1))
            y = self.scale * self.narrow(F.gelu(self.wide(y)))
            return x + y.permute(0, 3, 1, 2)

    blocks = nn.Sequential(Block(), Block())
    classify(place, nn.Sequential(nn.Conv2d(3, 8, 2, 2), blocks, nn.Conv2d(8, 5, 1)))


@model
def squeeze_excite(place):
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.small, self.large = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

        def forward(self, x):
            y = F.hardswish(self.small(F.adaptive_avg_pool2d(x, 1)))
            return x * F.hardsigmoid(self.large(y))

    classify(place, nn.Sequential(nn.Conv2d(3, 8, 3), Gate(), nn.Conv2d(8, 5, 1)))


@model
def pooling(place):
    class Pools(nn.Module):
        def forward(self, x):
            parts = [F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1)]
            parts += [F.lp_pool2d(x, 2, 2), F.adaptive_max_pool2d(x, 6)]
            parts += [F.adaptive_avg_pool2d(x, (6, 6))]
            values, places = F.max_pool2d(x, 2, return_indices=True)
            parts += [F.avg_pool2d(F.max_unpool2d(values, places, 2), 2)]
            return torch.cat(parts, 1)

    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Pools(), nn.Conv2d(24, 5, 1))
    classify(place, net)


@model
def resampling(place):
    class Sizes(nn.Module):
        def forward(self, x):
            modes = {"mode": "bilinear", "align_corners": True}
            parts = [F.interpolate(x, 9, mode="nearest"), F.interpolate(x, 9, **modes)]
            parts += [
                F.interpolate(x, 9, mode="bicubic"),
                F.interpolate(x, 9, mode="area"),
            ]
            parts += [F.interpolate(x, 9, mode="bilinear", antialias=True)]
            parts += [F.pixel_unshuffle(F.pixel_shuffle(x, 2)[..., :18, :18], 2)]
            return torch.cat(parts, 1)

    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Sizes(), nn.Conv2d(24, 5, 1))
    classify(place, net)


@model
def spatial_transformer(place):
    turn, body = nn.Linear(3, 6), nn.Conv2d(3, 5, 3)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.body = turn, body

        def forward(self, x):
            theta = self.turn(x.mean((2, 3))).view(-1, 2, 3)
            grid = F.affine_grid(theta, x.shape, align_corners=False)
            return self.body(F.grid_sample(x, grid, align_corners=False))

    classify(place, Net())


@model
def deformable(place):
    """Samples at learned offsets: grid_sample in a loop over the kernel's places."""
    offsets, weight = nn.Conv2d(3, 18, 3, padding=1), nn.Conv2d(27, 5, 1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.offsets, self.weight = offsets, weight

        def forward(self, x):
            moved = self.offsets(x).tanh().unflatten(1, (9, 2)).permute(1, 0, 3, 4, 2)
            line = torch.linspace(-1, 1, SIDE, device=x.device)
            grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
            parts = [
                F.grid_sample(x, grid + m, padding_mode="border", align_corners=True)
                for m in moved
            ]
            return self.weight(torch.cat(parts, 1))

    classify(place, Net())


@model
def patches(place):
    """A vision transformer's first layers; unfold and fold."""
    embed, layer = nn.Linear(48, 16), nn.TransformerEncoderLayer(16, 2, 32, 0.0)
    head, token = nn.Linear(16, 48), nn.Parameter(torch.zeros(1, 1, 16))
    net = nn.ModuleDict({"embed": embed, "layer": layer, "head": head})
    net.token = token

    def loss(step):
        x = place.normal(3, 3, SIDE, SIDE)
        rows = embed(F.unfold(x, 4, stride=4).permute(2, 0, 1))
        rows = torch.cat([net.token.expand(1, 3, 16), rows])
        y = head(layer(rows)[1:]).permute(1, 2, 0)
        return F.mse_loss(F.fold(y, SIDE, 4, stride=4), x)

    train(place, net, loss)


@model
def siamese(place):
    """Distances between two views of a batch."""
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(200, 16)
    )

    def loss(step):
        x = place.normal(6, 3, SIDE, SIDE)
        one, two = net(x), net(x.flip(3))
        distance = torch.cdist(one, two)
        same = torch.eye(6, device=place.device)
        pulled = same * distance.square() + (1 - same) * F.relu(3 - distance).square()
        return pulled.mean() + torch.pdist(one).mean().neg().exp()

    train(place, net, loss)


@model
def segmentation(place):
    """Pixels' classes with weights and ignored ones; dice."""
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))

    def loss(step):
        y, wanted = net(place.normal(2, 3, SIDE, SIDE)), place.whole(4, 2, SIDE, SIDE)
        weight = torch.tensor([1.0, 2.0, 0.5, 1.0], device=place.device)
        hot = F.one_hot(wanted, 4).permute(0, 3, 1, 2).float()
        share = y.softmax(1)
        dice = 1 - 2 * (share * hot).sum() / (share.square().sum() + hot.sum())
        return F.cross_entropy(y, wanted, weight, ignore_index=3) + dice

    train(place, net, loss)


@model
def detection(place):
    """Boxes against anchors: overlaps, hard negatives, smooth L1."""
    net = nn.Linear(16, 30 * 5)
    anchors = place.uniform(30, 4).cumsum(1)

    def loss(step):
        y = net(place.normal(1, 16)).view(30, 5)
        truth = place.uniform(3, 4).cumsum(1)
        low = torch.maximum(anchors[:, None, :2], truth[:, :2])
        high = torch.minimum(anchors[:, None, 2:], truth[:, 2:])
        inner = (high - low).clamp(min=0).prod(2)
        areas = [(b[:, 2:] - b[:, :2]).prod(1) for b in (anchors, truth)]
        overlap, match = (inner / (areas[0][:, None] + areas[1] - inner)).max(1)
        is_one = (overlap > 0.3).float()
        each = F.binary_cross_entropy_with_logits(y[:, 4], is_one, reduction="none")
        hard = (each * (1 - is_one)).topk(6).values.sum()
        off = F.smooth_l1_loss(y[:, :4], truth[match] - anchors, reduction="none").sum(1)
        return ((off + each) * is_one).sum() + hard

    train(place, net, loss)


@model
def style(place):
    """Pixels are the parameters; Gram matrices and total variation."""
    net = place.put(nn.Conv2d(3, 8, 3).requires_grad_(False))
    image = nn.ParameterList([nn.Parameter(torch.rand(1, 3, SIDE, SIDE))])

    def gram(x):
        rows = x.flatten(2)
        return rows @ rows.mT / rows.shape[2]

    wanted = gram(net(place.normal(1, 3, SIDE, SIDE)))

    def loss(step):
        x = image[0]
        flat = (x[..., 1:] - x[..., :-1]).abs().mean() + x.diff(dim=2).abs().mean()
        return F.mse_loss(gram(net(x)), wanted) + flat

    train(place, image, loss, adamw)

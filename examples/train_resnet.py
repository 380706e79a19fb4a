#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a ResNet of torchvision on synthetic images."""

import argparse
from contextlib import nullcontext

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Stripes, whose width and direction are the class, under noise."""

    def __init__(self, count, side, classes, seed):
        self.count, self.side, self.classes, self.seed = count, side, classes, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed + index)
        label = index % self.classes
        line = torch.arange(self.side) // (1 + label // 2) % 2
        image = line.float().expand(3, self.side, self.side)
        if label % 2:
            image = image.mT
        return image + 0.3 * torch.randn(image.shape, generator=generator), label


def train(options):
    torch.manual_seed(options.seed)
    model = torchvision.models.get_model(options.arch, num_classes=options.classes)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    model = model.to(options.device, memory_format=layout)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4, foreach=True
    )
    images = Images(
        options.batch * options.steps, options.side, options.classes, options.seed
    )
    pinned = torch.device(options.device).type == "cuda"
    loader = DataLoader(
        images, options.batch, num_workers=options.workers, pin_memory=pinned
    )
    half = torch.autocast(torch.device(options.device).type, torch.bfloat16)
    losses, gradients = [], []

    for step, (image, label) in enumerate(loader, 1):
        image = image.to(options.device, non_blocking=True, memory_format=layout)
        label = label.to(options.device, non_blocking=True)
        with half if options.amp else nullcontext():
            loss = F.cross_entropy(model(image), label, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        if options.save:
            gradients.append([p.grad.cpu() for p in model.parameters()])
        optimizer.step()
        losses.append(loss.item())
        print(f"step {step} loss {losses[-1]:.6f}", flush=True)

    if options.save:
        parameters = [t.detach().cpu() for t in model.state_dict().values()]
        torch.save(
            {"losses": losses, "gradients": gradients, "parameters": parameters},
            options.save,
        )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="resnet18", help="a classifier of torchvision")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--amp", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="file for losses, gradients and parameters")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())

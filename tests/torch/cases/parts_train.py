# SPDX-License-Identifier: Apache-2.0
"""Trains a model without lists of like blocks: parts_train.py lstm|unet|gan|penalty"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 3


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.rnn = nn.LSTM(32, 64, num_layers=2, batch_first=True)
        self.head = nn.Linear(64, 100)

    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0])


def double(given, taken):
    return nn.Sequential(
        nn.Conv2d(given, taken, 3, padding=1),
        nn.BatchNorm2d(taken),
        nn.ReLU(),
        nn.Conv2d(taken, taken, 3, padding=1),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.low = double(3, 8), double(8, 16), double(16, 32)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.up1 = double(48, 16), double(24, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        one = F.relu(self.down1(x))
        two = F.relu(self.down2(self.pool(one)))
        x = self.low(self.pool(two))
        x = self.up2(torch.cat([F.interpolate(x, scale_factor=2), two], 1))
        x = self.up1(torch.cat([F.interpolate(x, scale_factor=2), one], 1))
        return self.out(x)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 3, 4, 4), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x):
        return self.main(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, 32, 4, 4), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4)
        )

    def forward(self, x):
        return self.main(x).flatten()


def train(model, make_input, loss_of):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        loss_of(model(make_input())).backward()
        optimizer.step()
        optimizer.zero_grad()


def lstm():
    target = torch.zeros(8 * 50, dtype=torch.long, device="cuda")

    def loss(y):
        return F.cross_entropy(y.flatten(0, 1), target)

    train(Lstm().cuda(), lambda: torch.zeros_like(target).view(8, 50), loss)


def unet():
    def batch():
        return torch.randn(4, 3, 64, 64, device="cuda")

    train(UNet().cuda(), batch, lambda y: y.square().mean())


def gan(penalty=False):
    models = Generator().cuda(), Discriminator().cuda()
    optimizers = [torch.optim.Adam(model.parameters()) for model in models]
    generator, discriminator = models
    for _ in range(STEPS):
        real = torch.randn(8, 3, 16, 16, device="cuda")
        made = generator(torch.randn(8, 16, 1, 1, device="cuda"))
        loss = F.softplus(discriminator(made.detach())).mean()
        loss = loss + F.softplus(-discriminator(real)).mean()
        if penalty:
            real.requires_grad_()
            (slope,) = torch.autograd.grad(
                discriminator(real).sum(), real, create_graph=True
            )
            loss = loss + slope.square().mean()
        loss.backward()
        optimizers[1].step()
        optimizers[1].zero_grad()
        F.softplus(-discriminator(made)).mean().backward()
        optimizers[0].step()
        optimizers[0].zero_grad()


MODELS = {"lstm": lstm, "unet": unet, "gan": gan, "penalty": lambda: gan(True)}


if __name__ == "__main__":
    MODELS[sys.argv[1]]()

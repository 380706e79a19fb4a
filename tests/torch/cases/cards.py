# SPDX-License-Identifier: Apache-2.0
"""What chooses its way by the card's compute capability: sorts, scans and selections of
CUB, gradients of embeddings. Prints whether each equals the CPU's."""

import json

import torch
import torch.nn.functional as F


def results(device):
    torch.manual_seed(0)
    indices = torch.randint(0, 300, (4096,)).to(device)
    numbers = torch.rand(4096, 3).to(device)
    weight = torch.rand(300, 16).to(device).requires_grad_()
    F.embedding(indices, weight).sum().backward()
    bags = torch.rand(300, 16).to(device).requires_grad_()
    F.embedding_bag(indices.view(64, 64), bags, mode="mean").sum().backward()
    return {
        "embedding": weight.grad,
        "embedding_bag": bags.grad,
        "sort": numbers.sort(dim=0, stable=True).values,
        "topk": numbers.flatten().topk(100).values,
        "unique": indices.unique(),
        "nonzero": (indices % 7 == 0).nonzero(),
        "selected": numbers[indices % 5 == 0],
        "cumulated": indices.cumsum(0),
        "counted": indices.bincount(minlength=300),
        "multiplied": numbers.t() @ numbers,
    }


def main():
    here, there = results("cpu"), results("cuda")
    same = {name: torch.equal(here[name], there[name].cpu()) for name in here}
    print(json.dumps({"same": same, "card": torch.cuda.get_device_name()}))


if __name__ == "__main__":
    main()

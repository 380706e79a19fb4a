#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a Llama of Hugging Face on synthetic tokens. Nothing is downloaded.

    python train_llama.py
    python train_llama.py --layers 32 --hidden 4096 --heads 32 --kv-heads 8 \\
        --intermediate 14336 --vocab 128256 --sequence 4096 --dtype bfloat16
"""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make_model(options):
    config = LlamaConfig(
        vocab_size=options.vocab,
        hidden_size=options.hidden,
        intermediate_size=options.intermediate,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.kv_heads,
        max_position_embeddings=options.sequence,
        attn_implementation=options.attention,
        use_cache=False,
    )
    torch.manual_seed(options.seed)
    dtype = getattr(torch, options.dtype)
    if options.init == "device":
        with torch.device(options.device):
            model = LlamaForCausalLM(config)
    else:
        model = LlamaForCausalLM(config)
    model = model.to(options.device, dtype)
    if options.checkpoint:
        model.gradient_checkpointing_enable()
    model.train()
    return model


def make_batch(options, generator):
    """Random walks through the vocabulary; the last of each are padding."""
    shape = (options.batch, options.sequence)
    walk = torch.randint(0, 7, shape, generator=generator).cumsum(dim=1)
    tokens = walk % options.vocab
    lengths = torch.randint(
        options.sequence // 2,
        options.sequence + 1,
        (options.batch, 1),
        generator=generator,
    )
    mask = torch.arange(options.sequence) < lengths
    labels = tokens.masked_fill(~mask, -100)
    batch = {"input_ids": tokens, "attention_mask": mask.long(), "labels": labels}
    return {name: tensor.to(options.device) for name, tensor in batch.items()}


def train(options):
    model = make_model(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    generator = torch.Generator().manual_seed(options.seed)
    losses, gradients = [], []

    for step in range(1, options.steps + 1):
        loss = model(**make_batch(options, generator)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if options.save:
            gradients.append([p.grad.cpu() for p in model.parameters()])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        print(f"step {step} loss {losses[-1]:.6f}", flush=True)

    if options.save:
        parameters = [p.detach().cpu() for p in model.parameters()]
        torch.save(
            {"losses": losses, "gradients": gradients, "parameters": parameters},
            options.save,
        )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--intermediate", type=int, default=352)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument(
        "--checkpoint", action="store_true", help="gradient checkpointing"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--init", default="host", choices=["host", "device"])
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="file for losses, gradients and parameters")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())

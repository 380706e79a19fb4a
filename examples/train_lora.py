#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains LoRA adapters (PEFT) on a small Llama of Hugging Face. Nothing is downloaded."""

import argparse

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def make_model(options):
    config = LlamaConfig(
        vocab_size=options.vocab,
        hidden_size=options.hidden,
        intermediate_size=3 * options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.heads,
        attn_implementation=options.attention,
        use_cache=False,
    )
    torch.manual_seed(options.seed)
    model = LlamaForCausalLM(config).to(getattr(torch, options.dtype))
    if options.checkpoint:
        model.gradient_checkpointing_enable()
        model.enable_input_require_grads()
    lora = LoraConfig(
        r=options.rank,
        lora_alpha=2 * options.rank,
        lora_dropout=options.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, lora).to(options.device)
    model.train()
    return model


def train(options):
    model = make_model(options)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.lr)
    generator = torch.Generator().manual_seed(options.seed)
    torch.manual_seed(options.seed + 1)
    losses, gradients = [], []

    for step in range(1, options.steps + 1):
        shape = (options.batch, options.sequence)
        walk = torch.randint(0, 7, shape, generator=generator).cumsum(dim=1)
        tokens = (walk % options.vocab).to(options.device)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        if options.save:
            gradients.append([p.grad.cpu() for p in trained])
        optimizer.step()
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
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument(
        "--checkpoint", action="store_true", help="gradient checkpointing"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="file for losses, gradients and parameters")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())

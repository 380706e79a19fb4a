#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Llama by Hugging Face's Trainer, in bf16, accumulating gradients.

Nothing is downloaded, and nothing is written unless --save asks for it.
"""

import argparse
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Walks(Dataset):
    """Random walks through the vocabulary."""

    def __init__(self, count, sequence, vocab, seed):
        generator = torch.Generator().manual_seed(seed)
        steps = torch.randint(0, 7, (count, sequence), generator=generator)
        self.tokens = steps.cumsum(dim=1) % vocab

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class Record(TrainerCallback):
    """What was lost, and with --save the gradients of each step."""

    def __init__(self, save):
        self.save = save
        self.losses, self.gradients = [], []

    def on_pre_optimizer_step(self, arguments, state, control, model=None, **more):
        if self.save:
            self.gradients.append([p.grad.cpu() for p in model.parameters()])

    def on_log(self, arguments, state, control, logs=None, **more):
        if "loss" in logs:
            self.losses.append(float(logs["loss"]))
            print(f"step {state.global_step} loss {self.losses[-1]:.6f}", flush=True)


def make_model(options):
    torch.manual_seed(options.seed)
    config = LlamaConfig(
        vocab_size=options.vocab,
        hidden_size=options.hidden,
        intermediate_size=3 * options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.heads // 2,
        attn_implementation=options.attention,
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def make_arguments(options, folder):
    return TrainingArguments(
        output_dir=folder,
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        gradient_accumulation_steps=options.accumulate,
        gradient_checkpointing=options.checkpoint,
        learning_rate=options.lr,
        warmup_steps=1,
        optim=options.optimizer,
        bf16=options.precision == "mixed",
        use_cpu=options.device == "cpu",
        seed=options.seed,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def train(options):
    model = make_model(options)
    if options.precision == "bfloat16":
        model = model.bfloat16()
    count = options.batch * options.accumulate * options.steps
    data = Walks(count, options.sequence, options.vocab, options.seed)
    record = Record(options.save)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=make_arguments(options, folder),
            train_dataset=data,
            callbacks=[record],
        )
        trainer.train()
    if options.save:
        found = {"losses": record.losses, "gradients": record.gradients}
        found["parameters"] = [p.detach().cpu() for p in model.parameters()]
        torch.save(found, options.save)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--precision", default="mixed", choices=["mixed", "bfloat16"])
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument("--optimizer", default="adamw_torch")
    parser.add_argument(
        "--checkpoint", action="store_true", help="gradient checkpointing"
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="file for losses, gradients and parameters")
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())

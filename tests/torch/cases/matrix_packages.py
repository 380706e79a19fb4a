# SPDX-License-Identifier: Apache-2.0
"""Programs of Hugging Face's models, where those packages are."""

from importlib.util import find_spec
from typing import Any, List

import torch
from matrix_models import PROGRAMS, Program
from torch import nn

WIDTH = 64


def llama(attention: str, **options: Any) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_implementation=attention,
        **options,
    )
    return LlamaForCausalLM(config).train()


class LlamaEager(Program):
    """With the default cache, which is in the output."""

    attention = "eager"

    def make(self) -> List[nn.Module]:
        return [llama(self.attention)]

    def loss(self) -> torch.Tensor:
        tokens = torch.randint(0, 64, (2, 32)).cuda()
        return self.models[0](input_ids=tokens, labels=tokens).loss


class LlamaSdpa(LlamaEager):
    attention = "sdpa"


class LlamaKept(LlamaSdpa):
    """Cache, hidden states and logits of a step live until the next one's forward."""

    def loss(self) -> torch.Tensor:
        tokens = torch.randint(0, 64, (2, 32)).cuda()
        self.out = self.models[0](
            input_ids=tokens, labels=tokens, use_cache=True, output_hidden_states=True
        )
        return self.out.loss


class Lora(LlamaSdpa):
    def make(self) -> List[nn.Module]:
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(r=4, lora_dropout=0.1, target_modules="all-linear")
        return [get_peft_model(llama("sdpa"), lora)]


NEEDS = {
    "llamaeager": "transformers",
    "llamasdpa": "transformers",
    "llamakept": "transformers",
    "lora": "peft",
}
for name, package in NEEDS.items():
    if not find_spec(package):
        del PROGRAMS[name]

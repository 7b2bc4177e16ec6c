"""A BERT-sized encoder and a GPT-2-sized decoder, from torch.nn alone, and variants that a CPU trains in seconds.

Attention is F.scaled_dot_product_attention in both. Shapes: N batch, T tokens, H heads, D width, V vocabulary, C classes.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Attention", "Bert", "Block", "Gpt"]


class Attention(nn.Module):
    """Multi-head self-attention over (N, T, D); a causal one lets token t see the tokens up to t."""

    def __init__(self, width: int, heads: int, *, causal: bool, dropout: float):
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x_NTD: Tensor) -> Tensor:
        q_NHTd, k_NHTd, v_NHTd = self.qkv(x_NTD).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        dropout = self.dropout if self.training else 0.0
        y_NHTd = F.scaled_dot_product_attention(q_NHTd, k_NHTd, v_NHTd, dropout_p=dropout, is_causal=self.causal)
        return self.out(y_NHTd.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a two-layer MLP, each with a residual path; LayerNorm before them (GPT-2) or after (BERT)."""

    def __init__(self, width: int, heads: int, *, causal: bool, norm_first: bool, dropout: float):
        super().__init__()
        self.norm_first = norm_first
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal, dropout=dropout)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x_NTD: Tensor) -> Tensor:
        if self.norm_first:
            x_NTD = x_NTD + self.drop1(self.attention(self.norm1(x_NTD)))
            return x_NTD + self.drop2(self.mlp(self.norm2(x_NTD)))
        x_NTD = self.norm1(x_NTD + self.drop1(self.attention(x_NTD)))
        return self.norm2(x_NTD + self.drop2(self.mlp(x_NTD)))


class Bert(nn.Module):
    """An encoder with a classification head: token numbers int64 (N, T) to logits (N, classes).

    Sizes are BERT-base's by default: with 2 classes 109,483,778 parameters. All tokens are of one segment. std is the
    weights' when they are drawn; 0.02 is meant for wide layers.
    Source: Devlin et al. 2018, BERT.
    """

    def __init__(
        self,
        *,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        vocabulary: int = 30522,
        length: int = 512,
        classes: int = 2,
        dropout: float = 0.1,
        std: float = 0.02,
    ):
        super().__init__()
        self.length = length
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(width, heads, causal=False, norm_first=False, dropout=dropout) for _ in range(layers)
        )
        self.pooler = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)
        self.apply(partial(_draw, std=std))

    def forward(self, tokens_NT: Tensor) -> Tensor:
        positions_T = torch.arange(tokens_NT.shape[1], device=tokens_NT.device)
        segments_NT = torch.zeros_like(tokens_NT)
        x_NTD = self.tokens(tokens_NT) + self.positions(positions_T) + self.segments(segments_NT)
        x_NTD = self.drop(self.norm(x_NTD))
        for block in self.blocks:
            x_NTD = block(x_NTD)
        return self.head(self.drop(torch.tanh(self.pooler(x_NTD[:, 0]))))


class Gpt(nn.Module):
    """A decoder that predicts the next token: token numbers int64 (N, T) to logits (N, T, V).

    Sizes are GPT-2's by default: 124,439,808 parameters, the embedding shared with the output layer.
    Source: Radford et al. 2019, GPT-2.
    """

    def __init__(
        self,
        *,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        vocabulary: int = 50257,
        length: int = 1024,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.length = length
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(width, heads, causal=True, norm_first=True, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(partial(_draw, std=0.02))
        for block in self.blocks:  # so that the sum over all residual paths does not grow with the depth
            for last in (block.attention.out, block.mlp[-1]):
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * layers))
        self.head.weight = self.tokens.weight

    def forward(self, tokens_NT: Tensor) -> Tensor:
        positions_T = torch.arange(tokens_NT.shape[1], device=tokens_NT.device)
        x_NTD = self.drop(self.tokens(tokens_NT) + self.positions(positions_T))
        for block in self.blocks:
            x_NTD = block(x_NTD)
        return self.head(self.norm(x_NTD))


def _draw(module: nn.Module, std: float) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=std)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)

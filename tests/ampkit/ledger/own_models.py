"""Models as other people write them, which the ledger has never seen."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, 2, batch_first=True, dropout=0.1), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class ConvNeXtLike(nn.Module):
    """Its constructor reads values, as timm's stochastic depth does, and its blocks are plain sequences."""

    def __init__(self):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
        self.stem, self.head = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 10)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.GroupNorm(1, 16), nn.Conv2d(16, 16, 1), nn.GELU()
            )
            for _ in self.rates
        )

    def forward(self, x):
        x = self.stem(x)
        for rate, block in zip(self.rates, self.blocks, strict=True):
            keep = x.new_empty(len(x), 1, 1, 1).bernoulli_(1 - rate)
            x = x + block(x) * keep / (1 - rate)
        return self.head(x.mean((2, 3)))


class BceLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return nn.BCELoss()(torch.sigmoid(self.head(x)), torch.zeros_like(x[:, :1]))


class Swish(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * (s * (1 + x * (1 - s)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.norm, self.deep = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 16, 3, padding=1),
        )
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 5, 1)

    def forward(self, x):
        wide = Swish.apply(self.norm(self.down(x)))
        deep = Swish.apply(self.deep(F.max_pool2d(wide, 2)))
        return {"out": self.out(torch.cat([wide, self.up(deep)], 1))}


@dataclass
class Output:
    logits: Tensor
    hidden: Tensor


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.patch, self.encoder = nn.Conv2d(3, 32, 8, 8), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.token, self.place = nn.Parameter(torch.zeros(1, 1, 32)), nn.Parameter(torch.zeros(1, 17, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        hidden = self.encoder(torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place)
        return Output(self.head(hidden[:, 0]), hidden)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attention = nn.Embedding(100, 32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(32, 100, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens, keep):
        x = self.embed(tokens)
        x, _ = self.attention(x, x, x, key_padding_mask=~keep, need_weights=False)
        return self.head(x)


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.filter = nn.Linear(64, 64), nn.Parameter(torch.zeros(33, dtype=torch.complex64))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(self.linear(x).float()) * self.filter)


class Reentrant(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        x = self.layers[0](x)
        for layer in self.layers[1:]:
            x = checkpoint(lambda y, layer=layer: F.gelu(layer(y)), x, use_reentrant=True)
        return x


class Decides(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        h = self.linear(x)
        return h * 2 if h.sum() > 0 else h


class Mismatched(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x[:, :3])

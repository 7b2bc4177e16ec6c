import torch
from torch import nn
from torch.nn import functional as F

from ampkit.ops import inspect


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.embedding, self.norm = nn.Linear(8, 8), nn.Embedding(9, 8), nn.LayerNorm(8)
        self.batch_norm = nn.BatchNorm1d(8)

    def forward(self, h, x, y):
        return [
            self.linear(x), self.embedding(y), self.norm(h), h.softmax(-1), self.batch_norm(h), h.relu(), h * h, h**2,
            torch.cat([h, x]), h.sum(), F.cross_entropy(h, y),
        ]  # fmt: skip


seen = inspect(Everything(), torch.zeros(2, 8).half(), torch.zeros(2, 8), torch.zeros(2).long())
names = ["linear", "embedding", "layer_norm", "softmax", "batch_norm", "relu", "mul", "pow", "cat", "sum"]
names.append("cross_entropy")
PREDICTED = {name: str(info.dtype).removeprefix("torch.") for name, info in zip(names, seen.outputs, strict=True)}
PREDICTED["sdpa"] = PREDICTED["linear"]

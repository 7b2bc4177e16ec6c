import torch

half, single = torch.float16, torch.float32
PREDICTED = {
    "linear": half,
    "embedding": single,
    "layer_norm": single,
    "softmax": single,
    "batch_norm": half,
    "relu": half,
    "mul": half,
    "pow": single,
    "cat": single,
    "sum": single,
    "cross_entropy": single,
    "sdpa": half,
}

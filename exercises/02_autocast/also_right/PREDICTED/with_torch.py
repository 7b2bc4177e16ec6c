PREDICTED = {
    "linear": "torch.float16",
    "embedding": "torch.float32",
    "layer_norm": "torch.float32",
    "softmax": "torch.float32",
    "batch_norm": "torch.float16",
    "relu": "torch.float16",
    "mul": "torch.float16",
    "pow": "torch.float32",
    "cat": "torch.float32",
    "sum": "torch.float32",
    "cross_entropy": "torch.float32",
    "sdpa": "torch.float16",
}

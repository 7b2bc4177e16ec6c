"""."""

PREDICTED = {
    "linear": "float16",
    "embedding": "float16",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float32",
    "cat": "float16",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float16",
}

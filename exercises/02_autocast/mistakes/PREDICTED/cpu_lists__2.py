"""."""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float16",
    "softmax": "float16",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float16",
    "cat": "float32",
    "sum": "float16",
    "cross_entropy": "float16",
    "sdpa": "float16",
}

"""The joined tensor is predicted in FP16, as if autocast cast both parts down. Joining computes nothing and gains
nothing from FP16; think of what ordinary PyTorch does where dtypes meet, and what would be lost the other way.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
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

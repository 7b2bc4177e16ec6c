"""The linear layer is predicted in FP32 because its weight is FP32, and stays so. The weight that is multiplied is a
cast copy: products of matrices are the reason why there is autocast at all.
"""

PREDICTED = {
    "linear": "float32",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float16",
}

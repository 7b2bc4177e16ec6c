"""The sum is predicted in FP16, the dtype of its input. A sum of many small numbers passes FP16's largest number
easily, and whoever wrote CUDA's lists thought of that; look for the reductions in them.
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
    "cat": "float32",
    "sum": "float16",
    "cross_entropy": "float32",
    "sdpa": "float16",
}

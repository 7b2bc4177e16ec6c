"""Attention is predicted in FP32 because there is a softmax in it. As autocast sees it, it is one operation with a
name of its own, and what its kernel does inside is no concern of the lists; look its name up.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float32",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float32",
}

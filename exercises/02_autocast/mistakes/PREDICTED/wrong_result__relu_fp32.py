"""ReLU is predicted in FP32. It is exact in every dtype, so no list needs to name it: it gives back the dtype that it
gets, and what reaches it after a matrix product has autocast's.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float16",
    "relu": "float32",
    "mul": "float16",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float16",
}

"""Everything is predicted in FP32, as if weights in FP32 kept the results there. Weights stay FP32, and what an
operation gets is a cast copy; look up which operations autocast has on its list of lower precision, and what happens
to those on no list.
"""

PREDICTED = {
    "linear": "float32",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float32",
    "relu": "float32",
    "mul": "float32",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float32",
}

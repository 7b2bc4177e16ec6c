"""The embedding is predicted in FP16 because the layers around it are. Looking up rows of a table computes nothing,
and autocast has it on no list; which dtype do the rows have, then?
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float16",
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

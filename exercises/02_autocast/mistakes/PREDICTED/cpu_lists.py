"""This is what CPU autocast does, whose lists are others: there reductions, powers and normalisations stay in the
lower precision. The question is about CUDA; ampkit.fake runs CUDA's own casts on any machine.
"""

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
    "cross_entropy": "float32",
    "sdpa": "float16",
}

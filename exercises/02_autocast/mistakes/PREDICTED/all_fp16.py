"""Everything is predicted in FP16, as if autocast were model.half(). It casts by hand-written lists, and one of them
names operations whose results need FP32's precision or range; look for the table in PyTorch's documentation of
autocast.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float16",
    "layer_norm": "float16",
    "softmax": "float16",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float16",
    "cat": "float16",
    "sum": "float16",
    "cross_entropy": "float16",
    "sdpa": "float16",
}

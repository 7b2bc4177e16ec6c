"""."""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batchnorm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "crossentropy": "float32",
    "scaled_dot_product_attention": "float16",
}

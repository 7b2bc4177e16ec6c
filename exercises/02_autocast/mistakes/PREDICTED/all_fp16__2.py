"""."""

NAMES = ["linear", "embedding", "layer_norm", "softmax", "batch_norm", "relu", "mul", "pow", "cat", "sum"]
PREDICTED = dict.fromkeys([*NAMES, "cross_entropy", "sdpa"], "float16")

"""The lower precision here is called BF16, which is what CPU autocast takes by default and what newer GPUs are often
told to take. The question says which dtype the region is in.
"""

LOW = ["linear", "batch_norm", "relu", "mul", "sdpa"]
HIGH = ["embedding", "layer_norm", "softmax", "pow", "cat", "sum", "cross_entropy"]
PREDICTED = {**dict.fromkeys(LOW, "bfloat16"), **dict.fromkeys(HIGH, "float32")}

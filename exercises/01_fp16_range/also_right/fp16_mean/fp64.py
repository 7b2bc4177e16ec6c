"""FP64, and a tensor of the input's kind."""


def fp16_mean(x):
    return x.new_tensor(x.double().mean().item())

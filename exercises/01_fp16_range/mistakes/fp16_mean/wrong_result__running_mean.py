"""A mean that is updated element by element in FP16 loses the updates when they become small beside it, as in
lesson 1, section 5. Only the result belongs in FP16."""


def fp16_mean(x):
    flat = x.flatten()
    mean = flat[0].clone()
    for count in range(1, min(len(flat), 5000)):
        mean += (flat[count] - mean) / (count + 1)
    return mean

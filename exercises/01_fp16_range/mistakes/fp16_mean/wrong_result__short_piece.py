"""You average the means of pieces, and the last piece is shorter than the others: its few elements count for as much as a
whole piece. Give each piece the weight of its length, or take one mean of all elements."""

import torch


def fp16_mean(x):
    means = [piece.float().mean() for piece in x.flatten().split(100)]
    return torch.stack(means).mean().half()

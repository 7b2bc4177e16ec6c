"""Models for the digits, small enough that FP16 arithmetic on a CPU trains them in seconds."""

from torch import nn

__all__ = ["cnn", "mlp"]


def mlp(depth: int = 6, width: int = 32) -> nn.Sequential:
    """A deep tanh network: images (N, 1, 8, 8) to logits (N, 10), with depth linear layers and PyTorch's own init.

    PyTorch draws weights of a linear layer with standard deviation 1/sqrt(3·fan_in), so that each layer shrinks what
    flows back through it by about 0.58, and tanh by a little more: gradients get smaller from layer to layer.
    """
    layers = [nn.Flatten(), nn.Linear(64, width), nn.Tanh()]
    for _ in range(depth - 2):
        layers += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def cnn(width: int = 8) -> nn.Sequential:
    """A small convolutional network with BatchNorm: images (N, 1, 8, 8) to logits (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * width, 10),
    )

"""PyTorch mixed precision: real training loops and instruments."""

"""What every test of ampkit runs under."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """These models are too small for two threads to help, and on a busy machine two wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)

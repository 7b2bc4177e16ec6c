"""Threads that take work from a queue and end with their process."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Executor, Future


class Threads(Executor):
    """A pool of threads that does not hold up the end of the process: a box that runs then is ended with it."""

    def __init__(self, number: int) -> None:
        self._waiting: queue.SimpleQueue = queue.SimpleQueue()
        for _ in range(number):
            threading.Thread(target=self._work, daemon=True).start()

    def submit(self, fn, /, *args, **kwargs) -> Future:
        future: Future = Future()
        self._waiting.put((future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._waiting.put(None)

    def _work(self) -> None:
        while item := self._waiting.get():
            future, fn, args, kwargs = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # it belongs to who asked for the result
                future.set_exception(error)
            else:
                future.set_result(result)
        self._waiting.put(None)  # for the next thread

"""Ops that run in threads which the program starts: they are counted, and not judged.

PyTorch's modes belong to a thread. A judge in several would need a lock round every op, because it
changes what all threads share, such as the default type."""
import threading

from torch.utils._python_dispatch import TorchDispatchMode

from keel_judge.call import name_of

REASON = "ran in another thread"


class Counter(TorchDispatchMode):
    """Counts what `counts` wants counted, and lets it run."""

    supports_higher_order_operators = True

    def __init__(self, counts):
        super().__init__()
        self.counts = counts

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts(func)
        return func(*args, **(kwargs or {}))


class Elsewhere:
    """Puts a Counter into every thread that starts while it is entered."""

    def __init__(self, counts, threads):
        self.counts, self.threads = counts, threads  # `threads` takes the ids of those it knows
        self.lock, self.is_on, self.start = threading.Lock(), False, None

    def __enter__(self):
        self.is_on, self.start = True, threading.Thread.start
        elsewhere = self

        def start(thread):
            run = thread.run
            thread.run = lambda: elsewhere.run(run)
            return elsewhere.start(thread)
        threading.Thread.start = start
        return self

    def __exit__(self, *unused):
        threading.Thread.start, self.is_on = self.start, False

    def run(self, run):
        self.threads.add(threading.get_ident())
        with Counter(self._count):
            run()

    def _count(self, func):
        with self.lock:
            if self.is_on:
                self.counts(func)


def label(func):
    return name_of(func) if hasattr(func, "_schema") else str(func)

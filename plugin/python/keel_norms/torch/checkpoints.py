"""Gradient checkpoints that are exact for norms whose forward reads running statistics.

A checkpoint computes a part of a network again in the backward. By then the statistics have moved
on. Here the first forward keeps those that it read, and the recomputation reads these again."""
import threading

from torch.utils.checkpoint import checkpoint as torch_checkpoint

_active = threading.local()


class Pass:
    """One forward of a part. The first one writes the tape: what its norms read, and the tapes of
    the parts within it, in the order of the calls. A recomputation reads the tape from its start.
    """

    def __init__(self, tape, reads):
        self.tape, self.reads, self.place = tape, reads, 0

    def __enter__(self):
        self.outer, self.place = current(), 0
        _active.now = self

    def __exit__(self, *failure):
        _active.now = self.outer

    def read(self, states):
        """Copies of the states, or in the recomputation those of the first forward."""
        return self._kept(lambda: {name: state.clone() for name, state in states.items()})

    def inner(self):
        """The passes of a part within this one. Where this one reads, both do: the first forward
        of the inner part belongs to a recomputation, too."""
        tape = self._kept(list)
        return Pass(tape, self.reads), Pass(tape, True)

    def _kept(self, make):
        if not self.reads:
            self.tape.append(make())
        self.place += 1
        return self.tape[self.place - 1]


def current():
    """The pass of the part that is being computed, or None."""
    return getattr(_active, "now", None)


def checkpoint(function, *arguments, **options):
    """torch.utils.checkpoint.checkpoint without re-entry, for functions with PowerNorm,
    BatchRenorm or MABN in them. It keeps a copy of their statistics, a few numbers for each
    channel, and gives the bits of no checkpoint, with any number of forwards for one backward. Not
    for torch.compile. Options are those of PyTorch and arguments by name."""
    def passes():
        if (outer := current()) is not None:
            return outer.inner()
        tape = []
        return Pass(tape, False), Pass(tape, True)

    return torch_checkpoint(function, *arguments, use_reentrant=False, context_fn=passes, **options)

"""Gradient checkpoints that are exact for norms whose forward reads running statistics.

A checkpoint computes a part of a network again in the backward. By then the statistics have moved
on. Here the first forward keeps those that it read, and the recomputation reads these again."""
import threading

from torch.utils.checkpoint import checkpoint as torch_checkpoint

_active = threading.local()


class Tape:
    """The statistics that the norms of one part read, in the order of their calls."""

    def __init__(self):
        self.kept, self.next = [], None

    def read(self, states):
        """Copies of the states, or in the recomputation those of the first forward."""
        if self.next is None:
            self.kept.append({name: state.clone() for name, state in states.items()})
            return self.kept[-1]
        self.next += 1
        return self.kept[self.next - 1]


class _Pass:
    """One of the two forwards of a part: it writes the tape or reads it from its start."""

    def __init__(self, tape, reads):
        self.tape, self.reads = tape, reads

    def __enter__(self):
        self.outer = current()
        self.tape.next = 0 if self.reads else None
        _active.tape = self.tape

    def __exit__(self, *failure):
        _active.tape = self.outer


def current():
    """The tape of the part that is being computed, or None."""
    return getattr(_active, "tape", None)


def checkpoint(function, *arguments, **options):
    """torch.utils.checkpoint.checkpoint without re-entry, for functions with PowerNorm,
    BatchRenorm or MABN in them. It keeps a copy of their statistics, a few numbers for each
    channel, and gives the bits of no checkpoint, with any number of forwards for one backward. Not
    for torch.compile. Options are those of PyTorch and arguments by name."""
    def passes():
        tape = Tape()
        return _Pass(tape, False), _Pass(tape, True)

    return torch_checkpoint(function, *arguments, use_reentrant=False, context_fn=passes, **options)

"""Strided, offset, transposed and expanded views, and memory round inputs and outputs."""
import torch
from torch.overrides import TorchFunctionMode

from keel_judge.acid_test.outcome import FAIL, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, failed, refusal, thinned
from keel_judge.acid_test.samples import Arrays, Case, shapes_of

GUARD = 4096  # elements on each side
MARK = 0x5A


def padded(t):
    """Rows that lie further apart than their width."""
    buffer = torch.full((*t.shape[:-1], t.shape[-1] + 3), torch.nan, dtype=t.dtype)
    buffer[..., :t.shape[-1]] = t
    return buffer[..., :t.shape[-1]]


def every_second(t):
    buffer = torch.full((*t.shape[:-1], 2 * t.shape[-1]), torch.nan, dtype=t.dtype)
    buffer[..., ::2] = t
    return buffer[..., ::2]


def offset(t):
    """Not at the start of its memory, and not at a multiple of a vector."""
    buffer = torch.full((t.numel() + 11,), torch.nan, dtype=t.dtype)
    buffer[5:5 + t.numel()] = t.flatten()
    return buffer[5:5 + t.numel()].view(t.shape)


def transposed(t):
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else every_second(t)


def every_other_row(t):
    buffer = torch.full((2 * t.shape[0], *t.shape[1:]), torch.nan, dtype=t.dtype)
    buffer[::2] = t
    return buffer[::2]


def channels_last(t):
    return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else transposed(t)


def expanded(t):
    """One row for all, and for a parameter one number."""
    return t[:1].expand(t.shape)


VIEWS = {"rows apart": padded, "every second element": every_second, "offset": offset,
         "transposed": transposed, "every other row": every_other_row,
         "channels last": channels_last, "expanded": expanded}


class Strides(Property):
    name, title = "strides", "strided, offset, transposed and expanded views give the same"

    def check(self, trial):
        if not trial.adapter.keeps_strides:
            raise Skip("the library's arrays have no strides")

    def cases(self, trial):
        # The last axis of channels holds few steps, so that several axes are tried.
        shapes = [s for s in shapes_of(trial) if len(s) > 1 and s[0] > 1 and s[-1] > 1]
        kinds = [("x", v) for v in VIEWS] + [("gain", v) for v in list(VIEWS)[1:3]]
        kinds += [("gain", "expanded"), ("bias", "every second element"), ("x dy", "transposed")]
        if trial.adapter.has_gradients:
            kinds += [("dy", v) for v in VIEWS]
        kinds = [k for k in kinds if trial.has_gain or "gain" not in k[0]]
        kinds = [k for k in kinds if trial.has_bias or "bias" not in k[0]]
        cases = [Case(s, "normal", how=f"{names}: {view}") for names, view in kinds
                 for s in (shapes[:1] if trial.is_quick else shapes[:3])]
        return thinned(trial, cases, 12)

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        names, _, view = case.how.partition(": ")
        given = Arrays(**dict(arrays.items()))
        for name in names.split():
            setattr(given, name, VIEWS[view](getattr(arrays, name)))
        # An expanded view holds other numbers than its source: one row for all.
        held = Arrays(**{n: t.clone(memory_format=torch.contiguous_format)
                         for n, t in given.items()})
        plain = trial.call(held)
        try:
            got = trial.call(given)
        except Exception as error:
            return [refusal(error, f"{names}, {view}")]
        found = trial.compare(got, held)
        if trial.failures(plain, held):
            return [Outcome(PASS)]  # wrong without strides, too: another property says so
        return [failed(f"{names} is a view ({view}): {o.words}", o.share)
                if o.level == FAIL else o for o in found]


class Guarded(TorchFunctionMode):
    """Gives memory with guards on both sides for every tensor that Python code asks for."""

    MAKERS = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "zeros",
              "zeros_like", "new_zeros", "full", "full_like", "ones_like", "ones"}

    def __init__(self):
        super().__init__()
        self.buffers = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name not in self.MAKERS or not isinstance(made, torch.Tensor) or made.requires_grad \
                or made.device.type != "cpu" or made.layout != torch.strided or made.numel() == 0:
            return made
        buffer, inner = guarded(made)
        self.buffers.append((buffer, inner.untyped_storage().size()))
        return inner


def guarded(t):
    """A copy of a tensor in the midst of a larger buffer; its guards hold a pattern."""
    size = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    edge = GUARD * t.element_size()
    raw = torch.full((size * t.element_size() + 2 * edge,), MARK, dtype=torch.uint8)
    inner = raw[edge:edge + size * t.element_size()].view(t.dtype) \
        .as_strided(t.shape, t.stride(), GUARD)
    inner.copy_(t)
    return (raw, edge, size * t.element_size()), inner


def is_whole(buffer):
    raw, edge, size = buffer
    return bool((raw[:edge] == MARK).all()) and bool((raw[edge + size:] == MARK).all())


def in_nan(t):
    """The tensor between NaN: what is read beyond it shows."""
    buffer = torch.full((t.numel() + 2 * GUARD,), torch.nan, dtype=t.dtype)
    buffer[GUARD:GUARD + t.numel()] = t.flatten()
    return buffer, buffer[GUARD:GUARD + t.numel()].view(t.shape)


class Guards(Property):
    name, title = "guards", "reads and writes nothing beside its arrays"

    def check(self, trial):
        if not trial.adapter.keeps_memory:
            raise Skip("the library copies its arrays")

    def cases(self, trial):
        return [Case(s, "normal") for s in thinned(trial, shapes_of(trial), 4)]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        kept = {n: in_nan(t) for n, t in arrays.items()}
        given = Arrays(**{n: inner for n, (_, inner) in kept.items()})
        mode = Guarded()
        with mode:
            got = trial.call(given)
        found = [failed(f"writes beside its input {n}") for n, (buffer, inner) in kept.items()
                 if not bool(buffer[:GUARD].isnan().all() & buffer[GUARD + inner.numel():]
                             .isnan().all())]
        found += [failed(f"writes beside the {number + 1}. array that it makes")
                  for number, (buffer, _) in enumerate(mode.buffers) if not is_whole(buffer)]
        if not found and not trial.failures(trial.call(arrays), arrays):
            found = [failed(f"reads beside its arrays: {o.words}")
                     for o in trial.failures(got, arrays)]
        return found or [Outcome(PASS)]


PROPERTIES = (Strides, Guards)

"""Refusals of the masks and counters that a user gives, in words for all libraries. Values
are converted, never cast: a cast would make padding of a mask's 0.5 or 256."""
import numbers

from ._library import KeelError

LEAST = -1e4  # a mask that is added to scores has this for padding, or less
MOST_STEPS = 2**31 - 2  # keel counts the next one in an int32
ADDED = "; this looks like a mask that is added to scores: give mask == 0 instead"


def expect_finite(norm, least, greatest):
    """Refuses a mask by its extremes, which are NaN where any number is."""
    if LEAST < least and greatest < float("inf"):
        return
    got = greatest if LEAST < least else least
    raise KeelError(f"[{norm}] mask: expected 0 for padding and another finite number for each row "
                    f"that counts, got {got:g}{ADDED if got < 0 else ''}")


def expect_shape(norm, shape, expected):
    if tuple(shape) != tuple(expected):
        raise KeelError(f"[{norm}] mask: expected {tuple(expected)}, a number for each row of x, "
                        f"got {tuple(shape)}")


def expect_real(norm, is_real, got):
    if not is_real:
        raise TypeError(f"[{norm}] mask: expected booleans or real numbers, got {got}")


def expect_steps(name, is_integer, least, greatest, got):
    """Refuses a counter by its type and extremes."""
    if not is_integer:
        raise TypeError(f"{name}: expected an integer, got {got}")
    if not 0 <= least <= greatest <= MOST_STEPS:
        raise KeelError(f"{name}: expected 0 to {MOST_STEPS}, got "
                        f"{least if least < 0 else greatest}")


def expect_sequences(norm, shape, width=None, **given):
    """Refuses an x of `shape` without an axis of tokens, and shapes by name that are not (batch,
    width). Without a width it is that of x."""
    if len(shape) < 3:
        raise KeelError(f"[{norm}] x: expected (batch, ..., width), got {tuple(shape)}")
    expected = (shape[0], shape[-1] if width is None else width)
    for name, found in given.items():
        if tuple(found) != expected:
            raise KeelError(f"[{norm}] {name}: expected {expected}, a row for each sequence of x, "
                            f"got {tuple(found)}")


def expect_size(name, size, least=1):
    if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < least:
        raise KeelError(f"{name}: expected an integer of {least} or more, got {size!r}")

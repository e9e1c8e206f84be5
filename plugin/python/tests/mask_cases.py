"""Masks of all types that mean the same, and masks that are refused, for NumPy, PyTorch and JAX."""
import numpy as np

KEPT = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]], bool)
KINDS = ("?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d")
# Values that stand for "counts"; a cast to uint8 makes 0 of most of them.
VALUES = (1, 2, 256, 0.5, -1, -256, 2**16, 2**32, 1e-3)


def good():
    """Pairs of a name and a mask that keeps the rows of KEPT."""
    yield "bool", KEPT
    for kind in KINDS:
        for value in VALUES:
            with np.errstate(over="ignore"):
                made = np.array(value).astype(kind)
            if made.item() == value:  # the type holds it
                yield f"{value} as {made.dtype}", np.where(KEPT, made, made.dtype.type(0))
    yield "both signs", np.where(KEPT, np.linspace(-1, 1, 15).reshape(3, 5) + 2, 0)


def bad(shape=KEPT.shape):
    """Triples of an error, its words, and a mask of three rows of five."""
    numbers = np.where(KEPT, 1.0, 0.0)
    for value, words in ((np.nan, "got nan"), (np.inf, "got inf"), (-np.inf, "scores")):
        made = numbers.copy()
        made[1, 2] = value
        yield ValueError, words, made
    for padding in (-np.inf, -1e9, -1e4, np.finfo(np.float32).min):
        for kind in (np.float32, np.float64):
            yield ValueError, "mask == 0", np.where(KEPT, 0, padding).astype(kind)
    for wrong in (KEPT.T, KEPT[:, :4], KEPT.ravel(), KEPT[..., None], KEPT[None], KEPT[0]):
        yield ValueError, f"mask: expected {shape}", wrong
    yield TypeError, "booleans or real numbers, got ", KEPT.astype(np.complex64)

"""Masks and counters of a user as arrays that keel reads, for NumPy and JAX."""
import numpy as np

from . import _given


def mask_of(norm, mask, shape):
    """A mask of `shape` as 0 and 1."""
    array = np.asarray(mask)
    if array.dtype.kind == "V" and "float" in array.dtype.name:  # bfloat16 and narrower ones
        array = array.astype(np.float32)
    _given.expect_real(norm, array.dtype.kind in "biuf", array.dtype)
    _given.expect_shape(norm, array.shape, shape)
    if array.dtype.kind == "f" and array.size:
        _given.expect_finite(norm, array.min(), array.max())
    return np.asarray(array != 0, np.uint8, "C")


def step_of(step):
    """The counter of a state as an int32."""
    array = np.asarray(step)
    is_integer = array.dtype.kind in "iu"
    least, greatest = (array.min(), array.max()) if array.size and is_integer else (0, 0)
    _given.expect_steps("step", is_integer, least, greatest, array.dtype)
    return np.asarray(array, np.int32, "C")

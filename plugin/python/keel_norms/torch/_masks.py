"""Masks and counters of a user as tensors that keel reads."""
import torch
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.compiler import is_compiling

from .. import _given
from .._library import KeelError


def _is_hidden(tensor):
    """Whether nobody can look at the numbers: those of a graph that is being made, or none yet."""
    return (is_compiling() or torch.jit.is_tracing() or tensor.is_meta
            or type(tensor) is not torch.Tensor or is_functorch_wrapped_tensor(tensor))


def rows_of_mask(norm, mask, shape, device):
    """The mask of `shape` as 0 and 1 in one axis, on the device of x."""
    if not isinstance(mask, torch.Tensor):
        raise TypeError(f"[{norm}] mask: expected a tensor, got {type(mask).__name__}")
    _given.expect_real(norm, not mask.is_complex(), mask.dtype)
    _given.expect_shape(norm, mask.shape, shape)
    if mask.device != device:
        raise KeelError(f"[{norm}] mask: expected a tensor on {device}, as x is, got {mask.device}")
    if mask.is_floating_point() and mask.numel() and not _is_hidden(mask):
        wide = mask.detach().to(torch.float64 if mask.dtype == torch.float64 else torch.float32)
        _given.expect_finite(norm, *torch.stack(torch.aminmax(wide)).tolist())
    return mask.to(torch.bool).reshape(-1).to(torch.uint8)


def expect_counter(name, value):
    """Refuses a counter of a state_dict that an int32 does not hold."""
    is_integer = not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)
    seen = int(value) if is_integer and value.numel() == 1 and not _is_hidden(value) else 0
    _given.expect_steps(name, is_integer, seen, seen, value.dtype)

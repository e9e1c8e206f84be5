"""Defects that real programs had, made again: a mode that replaces what some ops leave."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from keel_judge.call import name_of, named_arguments


class Defect(TorchDispatchMode):
    """`broken` maps names of ops to functions of their named arguments and honest result."""

    def __init__(self, **broken):
        super().__init__()
        self.broken = broken

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        returned = func(*args, **kwargs)
        broken = self.broken.get(name_of(func)) if isinstance(func, torch._ops.OpOverload) else None
        return broken(named_arguments(func, args, kwargs), returned) if broken else returned


def wrong_from_row_9(given, y):
    """PyTorch 109457: Linear on MPS is wrong from batch 9 on."""
    y = y.clone()
    y[8:] = y[7]
    return y


def group_norm_dx(given, returned):
    """oneDNN before 4e81502c98: dx of group norm lacked the sums over the group."""
    shape = given["input"].shape
    n, c, groups = shape[0], shape[1], given["group"]
    rstd = given["rstd"].reshape(n, groups, 1).repeat_interleave(c // groups, 1)
    g = given["grad_out"].reshape(n, c, -1) * given["weight"].reshape(1, c, 1)
    dx = (rstd * (g - g.mean((1, 2), keepdim=True))).reshape(shape)
    return dx, *returned[1:]


def zeros_in_tail(given, returned):
    """quack before 9310d47: the zeros that fill up the last vector count as (0 - mean)^2."""
    x, n = given["input"], given["input"].shape[-1]
    mean = x.mean(-1, keepdim=True)
    padding = -n % 8
    var = ((x - mean).square().sum(-1, keepdim=True) + padding * mean.square()) / n
    rstd = (var + given["eps"]).rsqrt()
    y = (x - mean) * rstd * given["weight"] + given["bias"]
    return y, returned[1], rstd


def biased_running_variance(given, returned):
    """PyTorch 1410: the running variance is over n, where the documentation says n - 1."""
    n = given["input"].numel() / given["input"].shape[1]
    share = given["momentum"]
    former = 1 - share  # the state of a new module is 1
    given["running_var"].copy_(former + (given["running_var"] - former) * (n - 1) / n)
    return returned

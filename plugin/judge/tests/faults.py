"""Plants a fault in one op of a step: a mode below the judge, which spoils what the op leaves or
what it is given."""
import random

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from keel_judge.call import name_of, named_arguments, results_of
from keel_judge.judge import is_view
from keel_judge.rules import PASSED


def spoil_one(tensor, chance, by=1e-4):
    """Moves an element that is at least as large as the root mean square by a share of itself."""
    flat = tensor.detach().reshape(-1).double().cpu()
    rms = flat.square().mean().sqrt()
    places = ((flat.abs() >= rms) & flat.isfinite() & (flat.abs() > 1e-30)).nonzero().flatten()
    if len(places) == 0:
        return False
    place = int(places[chance.randrange(len(places))])
    moved = torch.tensor(float(flat[place]) * (1 + by), dtype=tensor.dtype)
    if float(moved) == float(flat[place]):
        return False
    index = []
    for size in reversed(tensor.shape):
        index.append(place % size)
        place //= size
    with torch.no_grad():
        tensor[tuple(reversed(index))] = moved
    return True


class Fault(TorchDispatchMode):
    """Spoils op number `at` (from 1, as findings count), or counts ops if `at` is 0."""

    def __init__(self, at, change=None, seed=0):
        super().__init__()
        self.at, self.change, self.seen = at, change, 0
        self.chance = random.Random(seed)
        self.planted, self.ops = "", []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or is_view(func) \
                or name_of(func) in PASSED:
            return func(*args, **kwargs)
        self.seen += 1
        self.ops.append(name_of(func))
        if self.seen != self.at:
            return func(*args, **kwargs)
        if self.change:
            return self._changed(func, args, kwargs)
        returned = func(*args, **kwargs)
        results = [r for r in results_of(func, named_arguments(func, args, kwargs), returned)
                   if r.got.is_floating_point() and r.got.numel()]
        self.chance.shuffle(results)
        if any(spoil_one(r.got, self.chance) for r in results):
            self.planted = name_of(func)
        return returned

    def _changed(self, func, args, kwargs):
        given = named_arguments(func, args, kwargs)
        spoiled = self.change(name_of(func), dict(given))
        if spoiled is None:
            return func(*args, **kwargs)
        self.planted = name_of(func)
        return func(**{a.name: spoiled[a.name] for a in func._schema.arguments
                       if a.name in spoiled})


def wrong_eps(name, given):
    if "norm" in name and isinstance(given.get("eps"), float) and "backward" not in name:
        return given | {"eps": 10 * given["eps"] + 1e-4}
    return None


TAILS = {"mm": ("self", 1), "bmm": ("self", 2), "addmm": ("mat1", 1), "_softmax": ("self", -1),
         "_log_softmax": ("self", -1), "native_layer_norm": ("input", -1), "sum": ("self", 0),
         "convolution": ("input", -1), "linalg_vector_norm": ("self", -1)}


def dropped_tail(name, given):
    """The last three elements of the axis that is summed over are left out."""
    def cut(x, axis):
        x = x.clone()
        x.narrow(axis, x.shape[axis] - 3, 3).zero_()
        return x
    if name not in TAILS:
        return None
    key, axis = TAILS[name]
    x = given[key]
    return given | {key: cut(x, axis)} if x.dim() and x.shape[axis] > 3 else None


def missing_mask(name, given):
    if not name.endswith("flash_attention_for_cpu"):
        return None
    if given.get("attn_mask") is not None:
        return given | {"attn_mask": None}
    return given | {"is_causal": False} if given["is_causal"] else None


def transposed_weight(name, given):
    key = {"mm": "mat2", "addmm": "mat2"}.get(name)
    if key is None or given[key].shape[0] != given[key].shape[1]:
        return None
    return given | {key: given[key].t()}


def stale_statistics(name, given):
    if name == "native_batch_norm_backward":
        return given | {"save_mean": given["save_mean"] + 0.01 * given["save_invstd"].reciprocal()}
    if name == "native_layer_norm_backward":
        return given | {"rstd": given["rstd"].roll(1, 0)}
    return None


# Each change, with the ops that it can spoil.
CHANGES = {
    wrong_eps: ("native_layer_norm", "native_batch_norm", "native_group_norm", "_fused_rms_norm"),
    dropped_tail: tuple(TAILS),
    missing_mask: ("_scaled_dot_product_flash_attention_for_cpu",),
    transposed_weight: ("mm", "addmm"),
    stale_statistics: ("native_batch_norm_backward", "native_layer_norm_backward"),
}

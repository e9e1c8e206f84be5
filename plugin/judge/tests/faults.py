"""Plants a fault in one op of a step: a mode below the judge, which spoils what the op leaves or
what it is given."""
import os
import random
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from keel_judge.call import before_writing, name_of, named_arguments, results_of
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


def phase_now():
    """forward, backward or optimizer, of the op that runs."""
    if torch._C._current_autograd_node() is not None:
        return "backward"
    frame = sys._getframe(1)
    while frame is not None:
        if os.path.join("torch", "optim") in frame.f_code.co_filename:
            return "optimizer"
        frame = frame.f_back
    return "forward"


class Fault(TorchDispatchMode):
    """Spoils op number `at` (from 1, as findings count), or counts ops if `at` is 0. Without a
    `change` of what the op is given, one element of a result is spoiled. `planted` is the op's
    name, or empty if it could not be spoiled."""

    def __init__(self, at, change=None, seed=0):
        super().__init__()
        self.at, self.change, self.seen = at, change, 0
        self.chance = random.Random(seed)
        self.planted, self.phase, self.ops = "", "", []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or is_view(func) \
                or name_of(func) in PASSED:
            return func(*args, **kwargs)
        self.seen += 1
        self.ops.append(name_of(func))
        if self.seen != self.at:
            return func(*args, **kwargs)
        self.phase = phase_now()
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
        copies = before_writing(func, given)
        honest = results_of(func, copies, call_of(func, copies))
        returned = call_of(func, spoiled)
        if differ(honest, results_of(func, given, returned)):
            self.planted = name_of(func)
        return returned


def call_of(func, given):
    return func(**{a.name: given[a.name] for a in func._schema.arguments if a.name in given})


def differ(honest, changed):
    """Whether a change did anything: a tail may have been zero."""
    return any(not torch.equal(a.got, b.got) for a, b in zip(honest, changed))


def wrong_eps(name, given):
    if "norm" in name and isinstance(given.get("eps"), float) and "backward" not in name:
        return given | {"eps": 10 * given["eps"] + 1e-4}
    return None


TAILS = {"mm": ("self", 1), "bmm": ("self", 2), "addmm": ("mat1", 1), "_softmax": ("self", -1),
         "_log_softmax": ("self", -1), "native_layer_norm": ("input", -1), "sum": ("self", 0),
         "convolution": ("input", -1), "linalg_vector_norm": ("self", -1)}


def dropped_tail(name, given):
    """The last three elements of the axis that is summed over are left out."""
    key, axis = TAILS[name]
    x = given[key]
    if not x.dim() or x.shape[axis] <= 3:
        return None
    x = x.clone()
    x.narrow(axis, x.shape[axis] - 3, 3).zero_()
    return given | {key: x}


def missing_mask(name, given):
    if given.get("attn_mask") is not None:
        return given | {"attn_mask": None}
    return given | {"is_causal": False} if given["is_causal"] else None


def transposed_weight(name, given):
    if given["mat2"].shape[0] != given["mat2"].shape[1]:
        return None
    return given | {"mat2": given["mat2"].t()}


def mirrored_kernel(name, given):
    weight = given["weight"]
    return given | {"weight": weight.flip(-1)} if weight.shape[-1] > 1 else None


def stale_statistics(name, given):
    """A mean that is off by 1 % of the deviation, or those of the row before."""
    if name == "native_batch_norm_backward":
        return given | {"save_mean": given["save_mean"] + 0.01 * given["save_invstd"].reciprocal()}
    key = {"native_layer_norm_backward": "rstd", "native_group_norm_backward": "rstd",
           "_softmax_backward_data": "output", "_log_softmax_backward_data": "output"}[name]
    return given | {key: given[key].roll(1, 0)} if len(given[key]) > 1 else None


def keep_for_momentum(name, given):
    """The running statistics take the share of the batch that they should keep."""
    return given | {"momentum": 1 - given["momentum"]} if given["training"] else None


def wrong_axis(name, given):
    """Softmax over the rows of the batch."""
    x = given["self"]
    return given | {"dim": 0} if x.dim() > 1 and given["dim"] % x.dim() else None


def missing_bias(name, given):
    key = {"addmm": "self", "convolution": "bias", "native_layer_norm": "bias",
           "native_batch_norm": "bias", "native_group_norm": "bias"}[name]
    bias = given.get(key)
    if bias is None or not bool((bias != 0).any()):
        return None
    return given | {key: torch.zeros_like(bias)}


def shifted_index(name, given):
    """Every row takes what is the next row's."""
    key = {"embedding": "indices", "embedding_dense_backward": "indices",
           "nll_loss_forward": "target", "nll_loss_backward": "target"}[name]
    moved = given[key].roll(1, -1)
    return given | {key: moved} if bool((moved != given[key]).any()) else None


def other_gelu(name, given):
    """The formula with tanh for that with erf, and back."""
    return given | {"approximate": "tanh" if given["approximate"] == "none" else "none"}


def wrong_divisor(name, given):
    """A mean loss over one row more."""
    return given | {"total_weight": given["total_weight"] + 1}


NUMBERS = {"mul": "other", "add": "alpha", "lerp": "weight", "addcmul": "value",
           "addcdiv": "value", "_foreach_mul": "scalar", "_foreach_add": "alpha",
           "_foreach_lerp": "weight", "_fused_adamw": "lr"}


def wrong_number(name, given):
    """A rate, a decay or a share of an optimizer that is off by 0.1 %."""
    key = NUMBERS[name.removesuffix("_")]
    number = given.get(key)
    wanted = isinstance(number, float) and number not in (0, 1) and phase_now() == "optimizer"
    return given | {key: number * 1.001} if wanted else None


def step_behind(name, given):
    """The bias correction of an optimizer is that of the step before."""
    steps = given["state_steps"]
    return given | {"state_steps": [s - 1 for s in steps]} if float(steps[0]) >= 2 else None


# Each change, with the ops that it can spoil.
NORMS = ("native_layer_norm", "native_batch_norm", "native_group_norm")
CHANGES = {
    wrong_eps: (*NORMS, "_fused_rms_norm"),
    dropped_tail: tuple(TAILS),
    missing_mask: ("_scaled_dot_product_flash_attention_for_cpu",),
    transposed_weight: ("mm", "addmm"),
    mirrored_kernel: ("convolution",),
    stale_statistics: ("native_batch_norm_backward", "native_layer_norm_backward",
                       "native_group_norm_backward", "_softmax_backward_data",
                       "_log_softmax_backward_data"),
    keep_for_momentum: ("native_batch_norm",),
    wrong_axis: ("_softmax", "_log_softmax"),
    missing_bias: ("addmm", "convolution", *NORMS),
    shifted_index: ("embedding", "embedding_dense_backward", "nll_loss_forward",
                    "nll_loss_backward"),
    other_gelu: ("gelu", "gelu_backward"),
    wrong_divisor: ("nll_loss_backward",),
    wrong_number: tuple(NUMBERS) + tuple(f"{name}_" for name in NUMBERS),
    step_behind: ("_fused_adamw_",),
}

"""Replaces the RMS norms of a model of Hugging Face transformers.

The library has about 200 classes of them, with a few formulas. They are told apart by what they
compute on random numbers, not by their names."""
import copy
import inspect
import itertools

import torch
from torch import nn

from . import functional
from .convert import convert
from .pair_modules import GatedRMSNorm
from .row_modules import RMSNorm

_NAMES = "RMSNorm", "T5LayerNorm"


def convert_transformers(model, *, skip=()):
    """Replaces the RMS norms of a model of Hugging Face transformers, in place, and returns the
    model: LlamaRMSNorm and its many copies, GemmaRMSNorm (whose weight is offset by 1),
    MambaRMSNormGated and Qwen3NextRMSNormGated, for example. They become RMSNorm and GatedRMSNorm
    of keel_norms.torch with the same parameters under the same names.

    A class counts if its name contains RMSNorm or T5LayerNorm and it has a weight of one axis;
    torch.nn.RMSNorm is left to `convert`. What a module computes is found by a try on random
    numbers: its gate, its groups, the offset of its weight, and whether it casts before the product
    with the weight. GatedRMSNorm casts once. A module that computes something else is an error that
    names it; classes whose names are in `skip` stay as they are."""
    if not isinstance(model, nn.Module):
        raise TypeError("convert_transformers: model: expected a module of PyTorch, got "
                        f"{type(model).__name__}")
    skipped = {skip} if isinstance(skip, str) else set(skip)
    found = {path: module for path, module in model.named_modules()
             if _is_rms_norm(module) and type(module).__name__ not in skipped}
    if not found:
        raise ValueError("convert_transformers: expected a model with RMS norms of transformers, "
                         f"got {type(model).__name__} with {_norms_in(model)}")
    replacements = {}
    for path, module in found.items():
        new = replacements[module] = _recognized(module)
        if new is None:
            kind = type(module).__name__
            raise TypeError(f"convert_transformers: {path or 'model'}: expected an RMS norm, gated "
                            f"or not, whose formula keel has, got another {kind}; "
                            f"skip=('{kind}',) leaves it as it is")
        for name, value in vars(module).items():  # such as variance_epsilon, which Mamba-2 reads
            if not hasattr(new, name):
                setattr(new, name, value)
    return convert(model, dict.fromkeys(map(type, found.values()), replacements.__getitem__))


def _is_rms_norm(module):
    weight = getattr(module, "weight", None)
    return (any(name in type(module).__name__ for name in _NAMES)
            and not isinstance(module, (nn.RMSNorm, GatedRMSNorm))
            and isinstance(weight, torch.Tensor) and weight.dim() == 1)


def _norms_in(model):
    kinds = sorted({type(m).__name__ for m in model.modules() if "Norm" in type(m).__name__})
    return ", ".join(kinds) or "no norms"


@torch.no_grad()
def _recognized(module):
    """The module of keel that computes what `module` does; None if there is none."""
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if not isinstance(eps, float):
        return None
    probe = _probe_of(module)
    numbers = _numbers(probe.weight.numel(), eps)
    tensors = numbers[:len(inspect.signature(type(module).forward).parameters) - 1]
    candidates = _plain(probe, eps) if len(tensors) == 1 else _gated(probe, eps)
    for new in candidates:
        new.weight.copy_(probe.weight)
        # Some norms drop an axis of size 1; keel's do not.
        if all(_agree(probe, new, given) for given in (tensors, [t[:, :1] for t in tensors])):
            return _with_cast_order(probe, new, tensors)
    return None


def _probe_of(module):
    """A copy in float32 on the CPU, with random parameters."""
    probe = copy.deepcopy(module).to_empty(device="cpu").float()
    draw = torch.Generator().manual_seed(1)
    for parameter in probe.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=draw))
    return probe


def _numbers(size, eps):
    """x and a gate; eps counts in the first half of x."""
    draw = torch.Generator().manual_seed(2)
    x, z = (torch.randn(2, 3, size, generator=draw) for _ in range(2))
    x[0] *= eps**0.5
    return [x, z]


def _plain(probe, eps):
    for offset in (0.0, 1.0):
        yield RMSNorm(probe.weight.numel(), eps=eps, offset=offset)


def _gated(probe, eps):
    size = probe.weight.numel()
    groups = getattr(probe, "n_groups", size // getattr(probe, "group_size", size))
    for gate, first in itertools.product(functional.GATES, (True, False)):
        yield GatedRMSNorm(size, gate=gate, norm_first=first, groups=groups, eps=eps)


def _agree(probe, new, tensors):
    """Whether both compute the same. A copy of any class may fail in any way."""
    try:
        expected = probe(*tensors)
    except Exception:  # noqa: BLE001
        return False
    return (isinstance(expected, torch.Tensor) and expected.shape == tensors[0].shape
            and torch.allclose(new(*tensors), expected, rtol=1e-4, atol=1e-5))


def _with_cast_order(probe, new, tensors):
    """The module with the order of cast and product that agrees with more results in bfloat16."""
    if isinstance(new, GatedRMSNorm):
        return new
    narrow, own = (copy.deepcopy(one).bfloat16() for one in (probe, new))
    x = tensors[0].bfloat16()
    expected, differing = narrow(x), {}
    for cast_first in (False, True):
        own.cast_first = cast_first
        differing[cast_first] = int((own(x) != expected).sum())
    new.cast_first = differing[True] < differing[False]
    return new

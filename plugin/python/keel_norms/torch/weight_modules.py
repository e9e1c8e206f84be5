"""Weight norm as a parametrization of a module's weight. Salimans & Kingma 2016."""
import functools

import torch
from torch import nn
from torch.nn.utils import parametrize

from . import functional
from ._options import named


class WeightNorm(nn.Module):
    """The parametrization w = g v / sqrt(sum(v^2) + `eps`). `dim` is the axis of the units, None
    for one length of the whole weight, as in torch.nn.utils.parametrizations.weight_norm."""

    norm = "weight_norm"

    @named
    def __init__(self, dim=0, *, eps=0.0):
        super().__init__()
        self.dim, self.added = -1 if dim is None else dim, eps

    def forward(self, g, v):
        return functional.weight_norm(v, g, self.dim, eps=self.added)

    def right_inverse(self, weight):
        """The g and v that give the weight."""
        g = torch.norm_except_dim(weight, 2, self.dim)
        return (g.square() + self.added).sqrt() if self.added else g, weight

    def extra_repr(self):
        return f"dim={self.dim}" + (f", eps={self.added}" if self.added else "")


def weight_norm(module, name="weight", dim=0, *, eps=0.0):
    """torch.nn.utils.parametrizations.weight_norm on keel's kernels: the parameter `name` of the
    module becomes original0, its length g, and original1, its direction v, in
    `module.parametrizations`. The state_dict is PyTorch's; that of PyTorch's older weight norm,
    with `name`_g and `name`_v, is read, too. Returns the module."""
    parametrize.register_parametrization(module, name, WeightNorm(dim, eps=eps), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_rename_old_keys, name))
    return module


def _rename_old_keys(name, state_dict, prefix, *unused):
    old = [f"{prefix}{name}_{part}" for part in "gv"]
    if all(key in state_dict for key in old):
        for place, key in enumerate(old):
            state_dict[f"{prefix}parametrizations.{name}.original{place}"] = state_dict.pop(key)

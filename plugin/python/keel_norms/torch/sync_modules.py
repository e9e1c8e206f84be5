"""Norms over a batch that lies on the processes of torch.distributed: statistics and gradients are
those of the whole batch, on CPUs by gloo. Shards may have any number of rows, even none. In
training every process of the group must call forward and backward.

The gradients of weight and bias are those of a process's own rows: DistributedDataParallel adds
the processes' gradients up and divides by their number."""
import torch
from torch import nn

from . import column_modules, functional
from ._shards import Shards, is_shared


class _Synced:
    """Gives the shards of a batch to a norm of column_modules. They lie on the processes of
    `process_group`, or on all."""

    def __init__(self, *arguments, process_group=None, **options):
        super().__init__(*arguments, **options)
        self.process_group = process_group

    def _shards(self):
        uses_batch = self.training or getattr(self, "running_mean", self) is None
        if not uses_batch or not is_shared(self.process_group):
            return None
        return Shards(self.process_group)


class SyncBatchNorm(_Synced, column_modules._BatchNorm, nn.modules.batchnorm._BatchNorm):
    """torch.nn.SyncBatchNorm on CPUs, of (n, channels) or (n, channels, ...), with a mask (n) or
    (n, length). Arguments are those of BatchNorm1d."""

    def forward(self, x, mask=None):
        if x.dim() > 4:
            return super().forward(x.flatten(3), mask).reshape(x.shape)
        return super().forward(x, mask)

    def _check_input_dim(self, x):
        if x.dim() < 2:
            raise ValueError(f"SyncBatchNorm: expected at least 2 axes, got {x.dim()}")


class SyncPNV(_Synced, column_modules.PNV):
    """PNV with the quadratic mean of all processes."""


class SyncPowerNorm(_Synced, column_modules.PowerNorm):
    """PowerNorm with the statistics of all processes. With `groups`, the scaling comes in front of
    the norm."""

    def forward(self, x, mask=None):
        if not (groups := self.attributes.get("groups", 0)):
            return super().forward(x, mask)
        if x.dim() == 4:
            raise ValueError("SyncPowerNorm: x: expected (..., channels) with groups, got "
                             f"{tuple(x.shape)}")
        scaled = functional.group_scaling(x, groups, self.attributes.get("scaling_eps", 1e-5))
        return super().forward(scaled, mask)

    def _attributes(self):
        return {name: value for name, value in self.attributes.items()
                if name not in ("groups", "scaling_eps")}


class SyncMABN(_Synced, column_modules.MABN):
    """MABN with the statistics of all processes."""


class SyncBatchRenorm(_Synced, column_modules.BatchRenorm1d):
    """BatchRenorm1d and 2d with the statistics of all processes."""


def convert_sync_batchnorm(model, process_group=None):
    """Replaces every batch norm of a model by SyncBatchNorm, in place, and returns the model.
    Parameters and buffers stay the same objects."""
    from .convert import convert, without_bias_of
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)

    def made(old):
        new = SyncBatchNorm(old.num_features, old.eps, old.momentum, old.affine,
                            old.track_running_stats, process_group=process_group)
        return without_bias_of(old, new)

    found = {type(module) for module in model.modules() if isinstance(module, kinds)}
    return convert(model, dict.fromkeys(found, made))

"""Norms over a batch that lies on the processes of torch.distributed: statistics and gradients are
those of the whole batch, on CPUs by gloo. Shards may have any number of rows, even none. In
training every process of the group must call forward and backward.

The gradients of weight and bias are those of a process's own rows: DistributedDataParallel adds
the processes' gradients up and divides by their number."""
import torch
from torch import nn

from . import column_modules, functional
from ._fx import Proxy
from ._options import extending
from ._shards import Shards, is_shared


class _Synced:
    """Gives the shards of a batch to a norm of column_modules. They lie on the processes of
    `process_group`, or on all."""

    def _shards(self):
        uses_batch = self.training or getattr(self, "running_mean", self) is None
        if not uses_batch or not is_shared(self.process_group):
            return None
        return Shards(self.process_group)


class SyncBatchNorm(_Synced, column_modules._BatchNorm, nn.modules.batchnorm._BatchNorm):
    """torch.nn.SyncBatchNorm on CPUs, of (n, channels) or (n, channels, ...), with a mask (n) or
    (n, length)."""

    @extending(nn.SyncBatchNorm.__init__)
    def __init__(self, process_group, **options):
        super().__init__(**options)
        self.process_group = process_group

    def _check_input_dim(self, x):
        if x.dim() < 2:
            raise ValueError(f"SyncBatchNorm: expected at least 2 axes, got {x.dim()}")


class SyncPNV(_Synced, column_modules.PNV):
    """PNV with the quadratic mean of all processes."""

    @extending(column_modules.PNV.__init__, **column_modules.PNV.__init__.other_names)
    def __init__(self, *, process_group=None, **options):
        super().__init__(**options)
        self.process_group = process_group


class SyncPowerNorm(_Synced, column_modules.PowerNorm):
    """PowerNorm with the statistics of all processes. With `heads`, the scaling comes in front of
    the norm."""

    @extending(column_modules.PowerNorm.__init__, **column_modules.PowerNorm.__init__.other_names)
    def __init__(self, *, process_group=None, **options):
        super().__init__(**options)
        self.process_group = process_group

    def forward(self, x, mask=None):
        groups = self.attributes["groups"]
        if not groups or isinstance(x, Proxy):
            return super().forward(x, mask)
        self._expect_channels(x)
        if x.dim() == 4:
            raise ValueError("SyncPowerNorm: x: expected (..., channels) with heads, got "
                             f"{tuple(x.shape)}")
        scaled = functional.group_scaling(x, groups, eps=self.attributes["scaling_eps"])
        return super().forward(scaled, mask)

    def _attributes(self):
        return {name: value for name, value in self.attributes.items()
                if name not in ("groups", "scaling_eps")}


class SyncMABN(_Synced, column_modules.MABN):
    """MABN with the statistics of all processes."""

    @extending(column_modules.MABN.__init__, **column_modules.MABN.__init__.other_names)
    def __init__(self, *, process_group=None, **options):
        super().__init__(**options)
        self.process_group = process_group


class SyncUnifiedNorm(_Synced, column_modules.UnifiedNorm):
    """UnifiedNorm with the statistics of all processes."""

    @extending(column_modules.UnifiedNorm.__init__,
               **column_modules.UnifiedNorm.__init__.other_names)
    def __init__(self, *, process_group=None, **options):
        super().__init__(**options)
        self.process_group = process_group


class SyncBatchRenorm(_Synced, column_modules.BatchRenorm1d):
    """BatchRenorm1d and 2d with the statistics of all processes."""

    @extending(column_modules.BatchRenorm1d.__init__,
               **column_modules.BatchRenorm1d.__init__.other_names)
    def __init__(self, *, process_group=None, **options):
        super().__init__(**options)
        self.process_group = process_group


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

"""keel's norms as modules of PyTorch, on CPUs and, where keel was built with CUDA, on GPUs.

    from keel_norms import torch as knn

    norm = knn.PowerNorm(512, warmup=4000)
    y = norm(x, mask)                      # x (batch, time, 512), mask (batch, time)
    model = knn.convert(model, {torch.nn.LayerNorm: knn.LayerNorm})

Modules that PyTorch has, too, are subclasses of PyTorch's with the same arguments and the same
state_dict. functional has all norms as functions. `binding` says by what their kernels are called:
"stable" for C++ over LibTorch's stable interface, or "ctypes"."""
from . import _ops, functional
from .checkpoints import checkpoint
from .column_modules import (MABN, PNV, BatchNorm1d, BatchNorm2d, BatchRenorm1d, BatchRenorm2d,
                             PowerNorm, RegularizedBatchNorm, UnifiedNorm)
from .convert import convert
from .layers import kernel_mapping
from .pair_modules import AdaLayerNormZero, GatedRMSNorm, QKNorm
from .row_modules import (AdaNorm, Derf, DetachNorm, DyT, GroupNorm, GroupScaling, InstanceNorm1d,
                          InstanceNorm2d, LayerNorm, LayerNormSimple, RMSNorm, ScaleNorm, SeeDNorm)
from .runs import load_run
from .sync_modules import (SyncBatchNorm, SyncBatchRenorm, SyncMABN, SyncPNV, SyncPowerNorm,
                           SyncUnifiedNorm, convert_sync_batchnorm)
from .transformers_norms import convert_transformers
from .weight_modules import WeightNorm, weight_norm

binding = "stable" if _ops.IS_COMPILED else "ctypes"

__all__ = ["AdaLayerNormZero", "AdaNorm", "BatchNorm1d", "BatchNorm2d", "BatchRenorm1d",
           "BatchRenorm2d", "Derf", "DetachNorm", "DyT", "GatedRMSNorm", "GroupNorm",
           "GroupScaling", "InstanceNorm1d", "InstanceNorm2d", "LayerNorm", "LayerNormSimple",
           "MABN", "PNV", "PowerNorm", "QKNorm", "RMSNorm", "RegularizedBatchNorm", "ScaleNorm",
           "SeeDNorm", "SyncBatchNorm", "SyncBatchRenorm", "SyncMABN", "SyncPNV", "SyncPowerNorm",
           "SyncUnifiedNorm", "UnifiedNorm", "WeightNorm", "binding", "checkpoint", "convert",
           "convert_sync_batchnorm", "convert_transformers", "functional", "kernel_mapping",
           "load_run", "weight_norm"]

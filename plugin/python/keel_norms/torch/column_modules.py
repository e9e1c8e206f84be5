"""Norms over the batch: running statistics are buffers, which a forward writes in place and never
rebinds. A step whose new statistics are not finite leaves them alone."""
import torch
from torch import nn
from torch.compiler import is_compiling

from .. import _library
from .._norms import NORMS
from . import checkpoints
from ._autograd import commit
from .functional import column_norm
from .row_modules import NoFastPath


def _is_recomputing():
    """Whether this forward runs inside a backward: gradient checkpointing computes it again. In a
    graph of torch.compile that cannot be told."""
    return not is_compiling() and torch._C._current_graph_task_id() != -1


def _update(norm, outputs, buffers):
    """Writes the next states of a forward into the buffers, {state: buffer}: all of them, or none
    where a number is not finite."""
    if _is_recomputing():
        return
    following = [(buffer, outputs.get(NORMS[norm].states[state].next))
                 for state, buffer in buffers.items()]
    moves = [(buffer, value) for buffer, value in following
             if value is not None and value.shape == buffer.shape]
    if moves:
        with torch.no_grad():
            commit(*map(list, zip(*moves)))


def _refuse_recomputing(module):
    """A norm that reads its state in training would recompute with what came after."""
    now = checkpoints.current()
    if module.training and _is_recomputing() and (now is None or not now.reads):
        raise RuntimeError(f"{type(module).__name__}: a checkpoint computes this norm again, but "
                           "its running statistics have moved on; use keel_norms.torch.checkpoint "
                           "or keep the norm outside of the checkpoint")


class _BatchNorm:
    """The forward of torch.nn's batch norms, with a mask."""

    norm = "batch_norm"

    def forward(self, x, mask=None):
        self._check_input_dim(x)
        if mask is not None and x.dim() == 4:
            raise ValueError("mask: expected none beside images, which have no padding")
        if mask is None and x.dim() == 3:
            return self._normalize(x.unsqueeze(2), None).squeeze(2)
        if x.dim() == 3:  # (n, channels, length) with a mask (n, length)
            return self._normalize(x.transpose(1, 2), mask).transpose(1, 2)
        is_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
        if is_last:  # the same memory as rows of channels
            rows = x.permute(0, 2, 3, 1)
            y = self._normalize(rows.reshape(-1, x.shape[1]), None)
            return y.reshape(rows.shape).permute(0, 3, 1, 2)
        return self._normalize(x, mask)

    def _normalize(self, x, mask):
        own = self._buffers.get
        mean, var = own("running_mean"), own("running_var")
        uses_batch = self.training or mean is None
        keeps = self.training and self.track_running_stats and not _is_recomputing()
        if keeps:
            own("num_batches_tracked").add_(1)
        if mean is None:
            channels = x.shape[1] if x.dim() == 4 else x.shape[-1]
            mean, var = x.new_zeros(channels), x.new_ones(channels)
        values = {"gain": self.weight, "bias": self.bias, "running_mean": mean, "running_var": var,
                  "mask": mask}
        outputs = column_norm("batch_norm", x, values, {
            "eps": self.eps, "keep": 1 - self._rate(), "training": uses_batch,
            "running_unbiased": True}, self._shards())
        if keeps and "next_running_mean" in outputs:
            with torch.no_grad():
                commit([mean, var], [outputs["next_running_mean"], outputs["next_running_var"]])
        return outputs["y"]

    def _shards(self):
        """Those of a batch on several processes; None: x is the batch."""

    def _rate(self):
        if self.momentum is not None or not self.track_running_stats:
            return self.momentum or 0.0
        return 1.0 / max(1, int(self.num_batches_tracked))


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    """torch.nn.BatchNorm1d on keel's kernels. A mask (n) or (n, length) leaves padding out of the
    statistics; there y and the gradient are 0."""


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """torch.nn.BatchNorm2d on keel's kernels; channels_last images are read in place."""


def _checked(module, attributes):
    """The attributes, refused by name where keel's op has no such."""
    known = _library.ops()[module.norm].defaults.keys() - {"training"}
    if unknown := sorted(attributes.keys() - known):
        raise TypeError(f"{module.__name__}: expected attributes of {', '.join(sorted(known))}, "
                        f"got {', '.join(unknown)}")
    return attributes


class _ColumnNorm(NoFastPath, nn.Module):
    """A norm with a state of keel. Its buffers are called as the states are, `step` is
    num_batches_tracked. x is (..., channels) with a mask of the other axes, or an image."""

    norm = ""  # keel's op, whose attributes the constructor takes by name

    def __init__(self, num_features, affine=True, *, device=None, dtype=None, **attributes):
        super().__init__()
        self.num_features, self.attributes = num_features, _checked(type(self), attributes)
        place = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.ones(num_features, **place)) if affine else None
        self.bias = nn.Parameter(torch.zeros(num_features, **place)) if affine else None
        shapes = {"channels": (num_features,), "scalar": (),
                  "ring": (attributes.get("m", 16), num_features)}
        wide = torch.promote_types(dtype or torch.get_default_dtype(), torch.float32)
        for name, state in NORMS[self.norm].states.items():
            self.register_buffer(self._buffer(name), torch.full(
                shapes[state.shape], float(state.first), device=device,
                dtype=wide).to(torch.int32 if name == "step" else wide))

    @staticmethod
    def _buffer(state):
        return "num_batches_tracked" if state == "step" else f"running_{state}".replace(
            "running_running", "running")

    def _apply(self, fn, recurse=True):
        """Moves and converts the module. Its states stay in float32 where weights become narrower:
        float16 holds no mean square above 65504."""
        before = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, buffer in self._buffers.items():
            if buffer.dtype in (torch.float16, torch.bfloat16):
                self._buffers[name] = before[name].to(buffer.device, torch.float32)
        return self

    def forward(self, x, mask=None):
        states = NORMS[self.norm].states
        if states.keys() != {"psi2"}:  # pn_v does not read its state in training
            _refuse_recomputing(self)
        buffers = {name: getattr(self, self._buffer(name)) for name in states}
        given = {**buffers, **self._read(buffers)}
        outputs = column_norm(self.norm, x, {"gain": self.weight, "bias": self.bias, "mask": mask,
                                             **given},
                              {**self._attributes(), "training": self.training},
                              self._shards())
        if self.training:
            moved = {name: b for name, b in buffers.items() if not states[name].by_backward}
            _update(self.norm, outputs, moved)
        self.outputs_seen(outputs)
        return outputs["y"]

    def _read(self, buffers):
        """Copies of the states that the forward reads, where copies are needed. Those that the
        backward moves are read by it, and are never copied."""
        part = None if is_compiling() or not self.training else checkpoints.current()
        if part is None:  # The step is saved for the backward, which must not see it move.
            return {name: b.clone() for name, b in buffers.items() if name == "step"}
        states = NORMS[self.norm].states
        return part.read({name: b for name, b in buffers.items() if not states[name].by_backward})

    def _attributes(self):
        return self.attributes

    def _shards(self):
        """Those of a batch on several processes; None: x is the batch."""

    def outputs_seen(self, outputs):
        """Hook for what a norm shows of itself."""

    def extra_repr(self):
        told = [str(self.num_features), *(f"{k}={v}" for k, v in self.attributes.items())]
        return ", ".join(told)


class PNV(_ColumnNorm):
    """Batch norm by the quadratic mean alone. Shen et al. 2020, definition 1."""

    norm = "pn_v"

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, **place):
        super().__init__(num_features, affine, **place, eps=eps, keep=1 - momentum)


class PowerNorm(_ColumnNorm):
    """PowerNorm, Shen et al. 2020, algorithm 2. The backward moves running_nu, which is in units of
    the loss. contraction and nu_max are those of the last training forward: nu stays bounded while
    contraction is below 1 (theorem 4)."""

    norm = "power_norm"

    def __init__(self, num_features, affine=True, **attributes):
        super().__init__(num_features, affine, **attributes)
        self.contraction = self.nu_max = None

    def outputs_seen(self, outputs):
        if self.training:
            self.contraction, self.nu_max = outputs.get("contraction"), outputs.get("nu_max")


class MABN(_ColumnNorm):
    """Moving average batch normalization, Yan et al. 2020; m batches in its averages."""

    norm = "mabn"


class BatchRenorm1d(_ColumnNorm):
    """Batch renormalization, Ioffe 2017, of (..., channels). momentum is the share of a batch that
    enters the running statistics."""

    norm = "batch_renorm"

    def __init__(self, num_features, eps=1e-3, momentum=0.01, affine=True, **attributes):
        super().__init__(num_features, affine, eps=eps, rate=momentum, **attributes)


class BatchRenorm2d(BatchRenorm1d):
    """Batch renormalization of images (n, channels, h, w)."""

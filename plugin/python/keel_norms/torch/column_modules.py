"""Norms over the batch: running statistics are buffers, which a forward writes in place and never
rebinds. A step whose new statistics are not finite leaves them unchanged."""
import torch
from torch import nn
from torch.compiler import is_compiling

from .. import _library
from .._given import expect_size
from .._library import KeelError
from .._norms import NORMS
from . import checkpoints
from ._autograd import commit
from ._fx import Proxy, leaf
from ._masks import expect_counter, rows_of_mask
from ._options import extending, named
from .functional import channels_last, column_norm, expect_tensor
from .row_modules import NoFastPath, expect_channels


def _is_recomputing():
    """Whether this forward runs inside a backward: gradient checkpointing computes it again. In a
    graph of torch.compile that cannot be told."""
    return not is_compiling() and torch._C._current_graph_task_id() != -1


def _refuse_traced_training(module):
    """A trace of TorchScript would run without the writes into the states."""
    if module.training and torch.jit.is_tracing():
        raise RuntimeError(f"{type(module).__name__}: torch.jit.trace records no training of its "
                           "states; trace it in evaluation, after eval()")


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
        if isinstance(x, Proxy):
            return leaf(self, x, mask)
        _refuse_traced_training(self)
        expect_tensor(type(self).__name__, x)
        self._check_input_dim(x)
        expect_channels(self, x, self.num_features)
        if mask is not None and x.dim() > 3:
            raise KeelError(f"{type(self).__name__}: mask: expected none beside images, which have "
                            f"no padding, got {tuple(mask.shape)}")
        if x.dim() == 3 and mask is not None:  # (n, channels, length) with a mask (n, length)
            return self._normalize(x.transpose(1, 2), mask).transpose(1, 2)
        if x.dim() > 3 and channels_last(x):  # the same memory as rows of channels
            rows = x.movedim(1, -1)
            return self._normalize(rows.flatten(0, -2), None).reshape(rows.shape).movedim(-1, 1)
        if x.dim() > 4:
            return self._normalize(x.flatten(3), None).reshape(x.shape)
        if x.dim() == 3:
            return self._normalize(x.unsqueeze(2), None).squeeze(2)
        return self._normalize(x, mask)

    def _normalize(self, x, mask):
        if mask is not None:  # a wrong one counts no batch
            mask = rows_of_mask("batch_norm", mask, x.shape[:-1], x.device).reshape(mask.shape)
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
        """The shards of a batch on several processes; None: x is the batch."""

    def _rate(self):
        if self.momentum is not None or not self.track_running_stats:
            return self.momentum or 0.0
        return 1.0 / max(1, int(self.num_batches_tracked))


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    """torch.nn.BatchNorm1d on keel's kernels. A mask (n) or (n, length) leaves padding out of the
    statistics; there y and the gradient are 0."""

    __init__ = named(nn.BatchNorm1d.__init__)


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """torch.nn.BatchNorm2d on keel's kernels; channels_last images are read in place."""

    __init__ = named(nn.BatchNorm2d.__init__)


class _ColumnNorm(NoFastPath, nn.Module):
    """A norm with a state of keel. Its buffers are called as the states are, `step` is
    num_batches_tracked. x is (..., channels) with a mask of the other axes, or an image."""

    norm = ""

    def __init__(self, num_features, *, affine=True, gain=True, bias=True, device=None, dtype=None,
                 **attributes):
        """Without `affine` there is neither weight nor bias, without `gain` no weight, without
        `bias` no bias. All other options are those of the class."""
        super().__init__()
        expect_size("num_features", num_features, 0)
        expect_size("m", attributes.get("m", 1))
        self.num_features, self.attributes = num_features, attributes
        place = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.ones(num_features, **place)) if affine and gain else None
        self.bias = nn.Parameter(torch.zeros(num_features, **place)) if affine and bias else None
        shapes = {"channels": (num_features,), "scalar": (),
                  "ring": (attributes.get("m"), num_features)}
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

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        """Loads the states; a counter that is none is an error, and is not cut to an int32."""
        name, counter = prefix + "num_batches_tracked", self._buffers.get("num_batches_tracked")
        if counter is not None and name in state_dict:
            try:
                expect_counter(name, state_dict[name])
                counter = state_dict[name].to(counter.dtype)
            except (TypeError, ValueError) as error:
                rest[-1].append(str(error))
            state_dict = {**state_dict, name: counter}
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _expect_channels(self, x):
        expect_tensor(type(self).__name__, x)
        image = x.dim() == 4
        if x.dim() == 0 or x.shape[1 if image else -1] != self.num_features:
            n = self.num_features
            raise KeelError(f"{type(self).__name__}: x: expected (..., {n}), or images (n, {n}, h, "
                            f"w), for a weight of ({n},), got {tuple(x.shape)}")

    def forward(self, x, mask=None):
        if isinstance(x, Proxy):
            return leaf(self, x, mask)
        _refuse_traced_training(self)
        self._expect_channels(x)
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
        """The shards of a batch on several processes; None: x is the batch."""

    def outputs_seen(self, outputs):
        """Hook for what a norm shows of itself."""

    def extra_repr(self):
        """The size and the options that differ from their defaults."""
        known = _library.ops()[self.norm].defaults
        told = {_OPTIONS.get(name, name): value for name, value in self.attributes.items()
                if not _is(value, known[name])}
        return ", ".join([str(self.num_features), *(f"{k}={v}" for k, v in told.items())])


_OPTIONS = {"groups": "heads"}  # what keel's command line calls an attribute


def _is(value, text):
    """Whether a value is the one of the text."""
    if isinstance(value, (bool, str)):
        return str(value).lower() == text
    return value == float(text)


class RegularizedBatchNorm(_ColumnNorm):
    """Batch norm of (..., channels) or images whose gradient is also that of a loss which keeps the
    batch's statistics near the running ones (RBN, Wang, Wu, Huang 2022). Added up over the
    channels, with s = sqrt(var + eps), it is
    mean_penalty (mean - running_mean)^2 + deviation_penalty (s - running_s)^2,
    by the running statistics after the step, which count as constants. Options:

    - `eps`: what is added to the variance; `keep`: the share of the running statistics that a step
      keeps. momentum=1 - keep may be given in its place;
    - `mean_penalty`, `deviation_penalty`: the weights. Each backward adds that gradient once,
      whatever the loss is multiplied by. The authors' program adds it to a loss that it divides by
      the tokens of the batch; for a mean loss, its weights are divided by them, too."""

    norm = "batch_norm"

    @extending(_ColumnNorm.__init__, momentum=("keep", lambda momentum: 1 - momentum))
    def __init__(self, *, eps=1e-5, keep=0.9, mean_penalty=0.1, deviation_penalty=0.01, **common):
        super().__init__(eps=eps, keep=keep, mean_penalty=mean_penalty,
                         deviation_penalty=deviation_penalty, **common)


class PNV(_ColumnNorm):
    """Batch norm by only the quadratic mean. Shen et al. 2020, definition 1. `eps` is added to the
    mean square. `keep` is the share of the running mean square that a step keeps; momentum=1 - keep
    may be given in its place."""

    norm = "pn_v"

    @extending(_ColumnNorm.__init__, momentum=("keep", lambda momentum: 1 - momentum))
    def __init__(self, *, eps=1e-5, keep=0.9, **common):
        super().__init__(eps=eps, keep=keep, **common)


class PowerNorm(_ColumnNorm):
    """PowerNorm, Shen et al. 2020, algorithm 2. Options:

    - `mode`: "paper", the algorithm as printed, or "release", as the authors' program has it;
    - `heads`, also called groups: so many groups of the channels are scaled in front of the norm,
      with `scaling_eps`; 0 for none. keel's command line has 1 by default;
    - `warmup`: steps that normalize by the batch's own statistics;
    - `alpha_f`, `alpha_b`: the shares that a step keeps of running_psi2 and of running_nu;
    - `eps`: what is added to the mean square;
    - `pad_stats`: whether the means of the backward count padding, as the authors' program does.

    The backward moves running_nu, which is in units of the loss. contraction and nu_max are those
    of the last training forward: nu stays bounded while contraction is below 1 (theorem 4)."""

    norm = "power_norm"

    @extending(_ColumnNorm.__init__, groups=("heads", lambda groups: groups))
    def __init__(self, *, mode="release", heads=0, warmup=0, alpha_f=0.9, alpha_b=0.9, eps=1e-5,
                 pad_stats=False, scaling_eps=1e-5, **common):
        super().__init__(mode=mode, groups=heads, warmup=warmup, alpha_f=alpha_f, alpha_b=alpha_b,
                         eps=eps, pad_stats=pad_stats, scaling_eps=scaling_eps, **common)
        self.contraction = self.nu_max = None

    def outputs_seen(self, outputs):
        if self.training:
            self.contraction, self.nu_max = outputs.get("contraction"), outputs.get("nu_max")


class MABN(_ColumnNorm):
    """Moving average batch normalization, Yan et al. 2020. It does not centralize the weights of
    the layer before it. Options:

    - `m`: batches in an average; `keep`: the share of running_v that a step keeps;
    - `warmup`: steps that normalize by the batch's own statistics;
    - `clip`: the ratio r is kept from 1 / clip to clip after `clip_after` steps;
    - `eps`: what is added to the mean square."""

    norm = "mabn"

    @extending(_ColumnNorm.__init__)
    def __init__(self, *, m=16, warmup=100, clip_after=1000, keep=0.98, clip=5, eps=1e-5, **common):
        super().__init__(m=m, warmup=warmup, clip_after=clip_after, keep=keep, clip=clip, eps=eps,
                         **common)


class UnifiedNorm(_ColumnNorm):
    """Unified normalization, Yang et al. 2022, as their program has it. Options:

    - `m`: batches in a mean, a power of two; `keep`: the share of running_v and of running_nu that
      a step keeps;
    - `warmup`: steps that normalize by the batch's own statistics;
    - `filter`: whether a batch that is an outlier does so, too; its authors leave it out for text;
    - `clip`: the factor of the gradient is kept from 1 / clip to clip after `clip_after` steps;
    - `eps`: what is added to the mean square.

    skips is 1 where the last training forward was an outlier, or m is 1."""

    norm = "unified_norm"

    @extending(_ColumnNorm.__init__)
    def __init__(self, *, m=4, warmup=4000, clip_after=1000, filter=True, keep=0.9, clip=5,
                 eps=1e-5, **common):
        super().__init__(m=m, warmup=warmup, clip_after=clip_after, filter=filter, keep=keep,
                         clip=clip, eps=eps, **common)
        self.skips = None

    def outputs_seen(self, outputs):
        if self.training:
            self.skips = outputs.get("skips")


class BatchRenorm1d(_ColumnNorm):
    """Batch renormalization, Ioffe 2017, of (..., channels). Options:

    - `eps`: what is added to the variance;
    - `rate`, also called momentum: the share of a batch that enters the running statistics;
    - `r_max`, `d_max`: the limits of r and d. With -1 they follow a schedule: from 1 and 0 up to
      `r_start` and `d_start`, they grow to `r_max_limit` and `d_max_limit` at `r_end` and `d_end`;
    - `updates`: those of the run. The schedule's steps are meant for 100,000 and scaled to it."""

    norm = "batch_renorm"

    @extending(_ColumnNorm.__init__, momentum=("rate", lambda momentum: momentum))
    def __init__(self, *, eps=1e-3, rate=0.01, r_max=-1, d_max=-1, r_max_limit=3, d_max_limit=5,
                 r_start=5000, r_end=40000, d_start=5000, d_end=25000, updates=100000, **common):
        steps = {"r_start": r_start, "r_end": r_end, "d_start": d_start, "d_end": d_end}
        super().__init__(eps=eps, rate=rate, r_max=r_max, d_max=d_max, r_max_limit=r_max_limit,
                         d_max_limit=d_max_limit, **common,
                         **{name: step * (updates / 100000) for name, step in steps.items()})


class BatchRenorm2d(BatchRenorm1d):
    """Batch renormalization of images (n, channels, h, w)."""

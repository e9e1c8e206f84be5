"""What keel's norms give, as data. The library tells inputs, outputs and attributes (_library.ops);
the first values of states, formulas and sources are here, as the headers src/ops/norm/NAME.h have
them."""
import functools
from dataclasses import dataclass, field
from typing import NamedTuple

from . import _library

CHANNELS, SCALAR, RING = "channels", "scalar", "ring"  # shapes of states; RING: (m, channels)


class State(NamedTuple):
    """A value that a norm keeps from step to step: its first value, its shape, and the output that
    gives its next value, of the forward or, with `by_backward`, of the backward."""
    first: float
    shape: str
    next: str
    by_backward: bool


@dataclass(frozen=True)
class Norm:
    op: str
    formula: str
    source: str
    first_states: dict = field(default_factory=dict)  # name: first value, or (first value, shape)

    @functools.cached_property
    def outputs(self):
        return _library.ops()[self.op].outputs

    @functools.cached_property
    def gradients(self):
        return _library.ops()[self.op + "_backward"].outputs

    @functools.cached_property
    def gradient(self):
        """exact; detached: a part counts as a constant; surrogate: what the paper has instead."""
        return _library.ops()[self.op].gradient

    @functools.cached_property
    def is_column(self):
        """Over the rows of a batch: x is (rows, channels) or an image."""
        return _library.ops()[self.op].groups == "columns"

    @functools.cached_property
    def states(self):
        all_states = {}
        for name, given in self.first_states.items():
            first, shape = given if isinstance(given, tuple) else (given, CHANNELS)
            following = "next_" + name
            all_states[name] = State(first, shape, following, following in self.gradients)
        return all_states

    def lacks(self, value):
        """Whether an output is one that does not apply, so that the backward is not given it."""
        return self.is_column and value is not None and tuple(value.shape) == (0,)


_COUNTER = (0, SCALAR)

NORMS = {norm.op: norm for norm in (
    Norm("layer_norm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the last `axes` axes",
         "Ba, Kiros, Hinton 2016"),
    Norm("rms_norm", "y = gain x / sqrt(mean(x^2) + eps) + bias, over a row",
         "Zhang & Sennrich 2019"),
    Norm("detach_norm", "y = (x - mean) / sqrt(var + eps); mean and deviation count as constants "
         "in the backward, as detach_mean and detach_variance say", "Xu et al. 2019"),
    Norm("ada_norm", "y = C (1 - k xhat) xhat, xhat = (x - mean) / sqrt(var + eps); "
         "C (1 - k xhat) counts as a constant in the backward", "Xu et al. 2019"),
    Norm("scale_norm", "y = gain x / max(|x|, eps), over a row; gain is one number",
         "Nguyen & Salazar 2019"),
    Norm("group_norm", "y = gain (x - mean) / sqrt(var + eps) + bias, over a group of channels",
         "Wu & He 2018"),
    Norm("group_scaling", "y = x / sqrt(mean(x^2) + eps), over a group of a row",
         "Shen et al. 2020, appendix A.1"),
    Norm("instance_norm",
         "y = gain (x - mean) / sqrt(var + eps) + bias, over a sample's time or area",
         "Ulyanov et al. 2016"),
    Norm("batch_norm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the batch",
         "Ioffe & Szegedy 2015", {"running_mean": 0, "running_var": 1}),
    Norm("batch_renorm", "y = gain (r (x - mean) / sqrt(var + eps) + d) + bias, over the batch; "
         "r and d count as constants in the backward", "Ioffe 2017",
         {"running_mean": 0, "running_std": 1, "step": _COUNTER}),
    Norm("pn_v", "y = gain x / sqrt(mean(x^2) + eps) + bias, over the batch",
         "Shen et al. 2020, eq. 4 to 6", {"psi2": 1}),
    Norm("power_norm", "y = gain x / sqrt(psi2 + eps) + bias, psi2 a running mean(x^2); the "
         "backward is the approximation of the paper, with a running nu",
         "Shen et al. 2020, algorithm 2", {"psi2": 1, "nu": 0, "step": _COUNTER}),
    Norm("mabn", "y = gain r x / sqrt(V + eps) + bias, V = mean(x^2) over the last m batches",
         "Yan et al. 2020", {"x2": (0, RING), "gz": (0, RING), "v": 1, "step": _COUNTER}),
)}

# A norm of weights: it takes a direction v and a length g, and has neither x nor y.
WEIGHT_NORM = Norm("weight_norm", "w = g v / sqrt(sum(v^2) + eps), over the weights of a unit",
                   "Salimans & Kingma 2016")
ALL = {**NORMS, "weight_norm": WEIGHT_NORM}

"""What keel's norms give, as data. The library tells inputs, outputs and attributes (_library.ops);
the first values of states, formulas and sources are here, as the headers src/ops/norm/NAME.h have
them."""
from dataclasses import dataclass
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
    outputs: tuple
    gradients: tuple
    states: dict
    is_column: bool  # over the rows of a batch: x is (rows, channels) or an image
    # Exact; detached: a part counts as a constant; surrogate: what the paper has in its place.
    gradient: str
    formula: str
    source: str
    more: tuple  # the names of the parameters beside gain and bias, such as alpha

    def lacks(self, value):
        """Whether an output is one that does not apply, so that the backward is not given it."""
        return self.is_column and value is not None and tuple(value.shape) == (0,)


def _norm(op, formula, source, first_states=None):
    """A norm with the library's facts. `first_states` has the first value, or (first value, shape),
    of each state by name."""
    facts, gradients = _library.ops()[op], _library.ops()[op + "_backward"].outputs
    more = tuple(name for name in facts.inputs
                 if "d" + name in gradients and name not in ("x", "gain", "bias", "v", "g"))
    states = {}
    for name, given in (first_states or {}).items():
        first, shape = given if isinstance(given, tuple) else (given, CHANNELS)
        following = "next_" + name
        states[name] = State(first, shape, following, following in gradients)
    return Norm(op, facts.outputs, gradients, states, facts.groups == "columns", facts.gradient,
                formula, source, more)


_COUNTER = (0, SCALAR)

NORMS = {norm.op: norm for norm in (
    _norm("layer_norm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the last `axes` axes",
          "Ba, Kiros, Hinton 2016"),
    _norm("rms_norm", "y = (offset + gain) x / sqrt(mean(x^2) + eps) + bias, over a row",
          "Zhang & Sennrich 2019"),
    _norm("detach_norm", "y = (x - mean) / sqrt(var + eps); mean and deviation count as constants "
          "in the backward, as detach_mean and detach_variance say", "Xu et al. 2019"),
    _norm("ada_norm", "y = C (1 - k xhat) xhat, xhat = (x - mean) / sqrt(var + eps); "
          "C (1 - k xhat) counts as a constant in the backward", "Xu et al. 2019"),
    _norm("scale_norm", "y = gain x / max(|x|, eps), over a row; gain is one number",
          "Nguyen & Salazar 2019"),
    _norm("seed_norm", "y = (tanh(sum(x b)) a + gain) x / sqrt(mean(x^2) + eps), over a row",
          "Cai et al. 2025"),
    _norm("dyt", "y = gain tanh(alpha x) + bias; alpha is one number",
          "Zhu, Chen, He, LeCun, Liu 2025"),
    _norm("derf", "y = gain erf(alpha x + shift) + bias; alpha and shift are one number each",
          "Chen, Lu, Zhu, Sun, Liu 2025"),
    _norm("group_norm", "y = gain (x - mean) / sqrt(var + eps) + bias, over a group of channels",
          "Wu & He 2018"),
    _norm("group_scaling", "y = x / sqrt(mean(x^2) + eps), over a group of a row",
          "Shen et al. 2020, appendix A.1"),
    _norm("instance_norm",
          "y = gain (x - mean) / sqrt(var + eps) + bias, over a sample's time or area",
          "Ulyanov et al. 2016"),
    _norm("batch_norm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the batch",
          "Ioffe & Szegedy 2015", {"running_mean": 0, "running_var": 1}),
    _norm("batch_renorm", "y = gain (r (x - mean) / sqrt(var + eps) + d) + bias, over the batch; "
          "r and d count as constants in the backward", "Ioffe 2017",
          {"running_mean": 0, "running_std": 1, "step": _COUNTER}),
    _norm("pn_v", "y = gain x / sqrt(mean(x^2) + eps) + bias, over the batch",
          "Shen et al. 2020, eq. 4 to 6", {"psi2": 1}),
    _norm("power_norm", "y = gain x / sqrt(psi2 + eps) + bias, psi2 a running mean(x^2); the "
          "backward is the approximation of the paper, with a running nu",
          "Shen et al. 2020, algorithm 2", {"psi2": 1, "nu": 0, "step": _COUNTER}),
    _norm("mabn", "y = gain r x / sqrt(V + eps) + bias, V = mean(x^2) over the last m batches",
          "Yan et al. 2020", {"x2": (0, RING), "gz": (0, RING), "v": 1, "step": _COUNTER}),
    _norm("unified_norm", "y = gain x / sqrt(V + eps) + bias, V the geometric mean of mean(x^2) of "
          "the last m batches; a batch that is an outlier has its own", "Yang et al. 2022",
          {"x2": (0, RING), "gz": (0, RING), "v": 1, "nu": 0, "step": _COUNTER}),
)}

# A norm of weights: it takes a direction v and a length g, and has neither x nor y.
WEIGHT_NORM = _norm("weight_norm", "w = g v / sqrt(sum(v^2) + eps), over the weights of a unit",
                    "Salimans & Kingma 2016")
# A residual sum and the norm of it: two results, y and the sum.
SUMS = {norm.op: norm for norm in (
    _norm("add_layer_norm", "s = x + residual, y = gain (s - mean) / sqrt(var + eps) + bias, over "
          "the last `axes` axes", "Ba, Kiros, Hinton 2016"),
    _norm("add_rms_norm",
          "s = x + residual, y = (offset + gain) s / sqrt(mean(s^2) + eps) + bias, over a row",
          "Zhang & Sennrich 2019"),
)}
ALL = {**NORMS, "weight_norm": WEIGHT_NORM, **SUMS}

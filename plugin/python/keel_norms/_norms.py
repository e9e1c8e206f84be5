"""What keel's norms give, as data. The C interface tells the inputs by place and the attributes;
the outputs by place and the states are here, as the headers src/ops/norm/NAME.h have them."""
from dataclasses import dataclass, field

CHANNELS, SCALAR, RING = "channels", "scalar", "ring"  # shapes of states; RING: (m, channels)


@dataclass(frozen=True)
class State:
    """A value that a norm keeps from step to step: its first value, its shape, and the output that
    gives its next value, of the forward or, with `by_backward`, of the backward."""
    first: float
    next: str
    shape: str = CHANNELS
    by_backward: bool = False


@dataclass(frozen=True)
class Norm:
    outputs: tuple
    gradients: tuple = ("dx", "dgain", "dbias")
    states: dict = field(default_factory=dict)
    is_column: bool = False  # over the rows of a batch: x is (rows, channels) or an image
    # Exact; detached: a part counts as a constant; surrogate: what the paper has in its place.
    gradient: str = "exact"
    formula: str = ""
    source: str = ""

    def lacks(self, value):
        """Whether an output is one that does not apply, so that the backward is not given it."""
        return self.is_column and value is not None and tuple(value.shape) == (0,)


_CENTRED = ("y", "mean", "rstd")

NORMS = {
    "layer_norm": Norm(
        _CENTRED, formula="y = gain (x - mean) / sqrt(var + eps) + bias, over the last `axes` axes",
        source="Ba, Kiros, Hinton 2016"),
    "rms_norm": Norm(("y", "rrms"), formula="y = gain x / sqrt(mean(x^2) + eps) + bias, over a row",
                     source="Zhang & Sennrich 2019"),
    "detach_norm": Norm(
        _CENTRED, ("dx",),
        formula="y = (x - mean) / sqrt(var + eps); mean and deviation count as constants in the "
                "backward, as detach_mean and detach_variance say", gradient="detached",
        source="Xu et al. 2019"),
    "ada_norm": Norm(
        _CENTRED, ("dx",),
        formula="y = C (1 - k xhat) xhat, xhat = (x - mean) / sqrt(var + eps); C (1 - k xhat) "
                "counts as a constant in the backward", gradient="detached",
        source="Xu et al. 2019"),
    "scale_norm": Norm(("y", "rnorm"), ("dx", "dgain"),
                       formula="y = gain x / max(|x|, eps), over a row; gain is one number",
                       source="Nguyen & Salazar 2019"),
    "group_norm": Norm(
        _CENTRED, formula="y = gain (x - mean) / sqrt(var + eps) + bias, over a group of channels",
        source="Wu & He 2018"),
    "group_scaling": Norm(("y", "rrms"), ("dx",),
                          formula="y = x / sqrt(mean(x^2) + eps), over a group of a row",
                          source="Shen et al. 2020, appendix A.1"),
    "instance_norm": Norm(
        _CENTRED,
        formula="y = gain (x - mean) / sqrt(var + eps) + bias, over a sample's time or area",
        source="Ulyanov et al. 2016"),
    "batch_norm": Norm(
        ("y", "mean", "rstd", "next_running_mean", "next_running_var"),
        states={"running_mean": State(0, "next_running_mean"),
                "running_var": State(1, "next_running_var")}, is_column=True,
        formula="y = gain (x - mean) / sqrt(var + eps) + bias, over the batch",
        source="Ioffe & Szegedy 2015"),
    "batch_renorm": Norm(
        ("y", "mean", "rstd", "r", "d", "next_running_mean", "next_running_std", "next_step"),
        states={"running_mean": State(0, "next_running_mean"),
                "running_std": State(1, "next_running_std"),
                "step": State(0, "next_step", SCALAR)}, is_column=True,
        formula="y = gain (r (x - mean) / sqrt(var + eps) + d) + bias, over the batch; r and d "
                "count as constants in the backward", gradient="detached", source="Ioffe 2017"),
    "pn_v": Norm(("y", "rpsi", "next_psi2"), is_column=True,
                 states={"psi2": State(1, "next_psi2")},
                 formula="y = gain x / sqrt(mean(x^2) + eps) + bias, over the batch",
                 source="Shen et al. 2020, eq. 4 to 6"),
    "power_norm": Norm(
        ("y", "rpsi", "rdx", "gamma", "next_psi2", "next_step", "contraction", "nu_max", "rrms"),
        ("dx", "dgain", "dbias", "next_nu"),
        states={"psi2": State(1, "next_psi2"), "nu": State(0, "next_nu", by_backward=True),
                "step": State(0, "next_step", SCALAR)}, is_column=True,
        formula="y = gain x / sqrt(psi2 + eps) + bias, psi2 a running mean(x^2); the backward is "
                "the approximation of the paper, with a running nu",
        gradient="surrogate", source="Shen et al. 2020, algorithm 2"),
    "mabn": Norm(
        ("y", "rstd", "r", "next_x2", "next_v", "next_step"), ("dx", "dgain", "dbias", "next_gz"),
        states={"x2": State(0, "next_x2", RING), "gz": State(0, "next_gz", RING, by_backward=True),
                "v": State(1, "next_v"), "step": State(0, "next_step", SCALAR)}, is_column=True,
        formula="y = gain r x / sqrt(V + eps) + bias, V = mean(x^2) over the last m batches",
        gradient="surrogate", source="Yan et al. 2020"),
}

# A norm of weights: it takes a direction v and a length g, and has neither x nor y.
WEIGHT_NORM = Norm(("w", "rnorm"), ("dv", "dg"), formula="w = g v / sqrt(sum(v^2) + eps), over the "
                   "weights of a unit", source="Salimans & Kingma 2016")
ALL = {**NORMS, "weight_norm": WEIGHT_NORM}

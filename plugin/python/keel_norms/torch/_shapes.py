"""The shapes of what a norm gives, for tensors that have no numbers yet (torch.compile, meta)."""
import math

from .._norms import ALL

NONE = (0,)


def _rows(x, axes):
    return (math.prod(x.shape[:x.dim() - axes]),)


def _groups(x, a):
    groups = (x.shape[0], int(a["groups"]))
    return [x.shape, groups, groups]


def _columns(*kinds):
    """Statistics of channels: "c" a channel each, "n" the same in training only, "s" a number in
    training only, "o" always one, "r" (m, channels) in training only."""
    def shapes(x, a):
        channels = (x.shape[1],)
        training = a["training"] == "true"
        of = {"c": channels, "n": channels if training else NONE, "s": () if training else NONE,
              "o": (),
              "r": (int(a.get("m", "0")), x.shape[1]) if training else NONE}
        return [x.shape, *(of[kind] for kind in kinds)]
    return shapes


def _power_norm(x, a):
    shapes = _columns(*"ccnnsss")(x, a)
    groups = int(a["groups"])
    return [*shapes, (x.shape[0], groups) if groups > 0 else NONE]


def _sum(norm):
    """The shapes of a residual sum and the norm of it: those of the norm, and of the sum."""
    return lambda x, a: [x.shape, *[_rows(x, int(a["axes"]))] * (len(ALL[norm].outputs) - 2),
                         x.shape]


_FORWARD = {
    "add_layer_norm": _sum("add_layer_norm"), "add_rms_norm": _sum("add_rms_norm"),
    "group_norm": _groups,
    "instance_norm": lambda x, a: [x.shape, *2 * [(x.shape[0], x.shape[2])]],
    "group_scaling": lambda x, a: [x.shape, (*_rows(x, 1), int(a["groups"]))],
    "batch_norm": _columns(*"ccnn"), "batch_renorm": _columns(*"ccccnns"),
    "pn_v": _columns(*"cn"), "power_norm": _power_norm, "mabn": _columns(*"ccrns"),
    "unified_norm": _columns(*"ccorns"),
    "weight_norm": lambda v, a: [v.shape, (v.shape[1 if a["by_column"] == "true" else 0],)],
}


def forward(norm, x, a):
    """The shapes of the outputs of a norm. Those of norms of rows are statistics, one a row."""
    if norm in _FORWARD:
        return _FORWARD[norm](x, a)
    return [x.shape, *[_rows(x, int(a["axes"]))] * (len(ALL[norm].outputs) - 1)]


def _parameters(norm, x, a):
    """The shape of a gain and of a bias."""
    if "axes" in a:
        return x.shape[x.dim() - int(a["axes"]):]
    return (x.shape[1 if x.dim() == 4 or norm != "instance_norm" and x.dim() == 2 else -1],)


def backward(norm, values, a):
    """The shapes of the gradients and of the states that the backward moves, by name. `values` are
    the inputs of the backward by name."""
    if norm == "weight_norm":
        return {"dv": values["v"].shape, "dg": values["g"].shape}
    x, gain = values["dy"], values.get("gain")
    given = {"dx": x.shape, "dgain": NONE if gain is None else gain.shape,
             **{"d" + name: NONE if values.get(name) is None else values[name].shape
                for name in ALL[norm].more},
             "dbias": _parameters(norm, x, a) if a.get("wants_dbias") == "true" else NONE}
    for state in ("nu", "gz"):
        if values.get(state) is not None:
            moves = a["training"] == "true"
            given[f"next_{state}"] = values[state].shape if moves else NONE
    return given

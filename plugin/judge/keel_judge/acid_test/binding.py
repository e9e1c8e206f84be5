"""How a norm is called: which of its parameters is x, which the gain, and so on, by their names."""
import inspect

import torch

from keel_judge.formulas import BIASES, GAINS

# role: names that programs give to such a parameter.
NAMES = {
    "x": ("x", "input", "inputs", "hidden_states", "xs", "a", "tensor", "data", "hidden", "arr"),
    "gain": (*GAINS, "weights"), "bias": BIASES,
    "eps": ("eps", "epsilon", "variance_epsilon"),
    "shape": ("normalized_shape",),
    "width": ("hidden_size", "dim", "d", "n", "width", "size", "num_features", "num_channels",
              "features", "normalized_shape", "d_model", "dims", "channels", "embed_dim"),
    "groups": ("num_groups", "groups", "group"),
    "offset": ("offset",),
    "running_mean": ("running_mean",), "running_var": ("running_var",),
    "training": ("training", "use_input_stats", "train"), "momentum": ("momentum",),
    "mask": ("mask", "valid_mask", "padding_mask", "pad_mask"),
    "dy": ("dy", "grad", "grad_output", "grad_out", "g_out", "dout", "do", "grad_y"),
}
ROLES = {name: role for role, names in NAMES.items() for name in names if role != "width"}
STATE = ("running_mean", "running_var")
LEAVES_OUT = ("padding_mask", "pad_mask")  # masks that are true where a row is left out


class Parameter:
    """A parameter of a callable: its name, its role, and whether it must be given."""

    def __init__(self, name, default, by_name):
        self.name, self.default, self.by_name = name, default, by_name
        self.role = ROLES.get(name, "")
        self.is_needed = default is inspect.Parameter.empty


def parameters_of(function):
    """The parameters of a function or of an op of PyTorch; None where nothing tells them."""
    schema = getattr(getattr(function, "default", function), "_schema", None)
    if schema is not None:
        return [Parameter(a.name, a.default_value if a.has_default_value()
                          else inspect.Parameter.empty, a.kwarg_only) for a in schema.arguments]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    left_out = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = [Parameter(p.name, p.default, p.kind is p.KEYWORD_ONLY)
             for p in signature.parameters.values() if p.kind not in left_out]
    return found or None


class Binding:
    """Calls a function with what its parameters ask for. `call`, if given, does that itself:
    call(function, x, gain, bias) returns y."""

    width, shape, dims = None, None, ()  # what a norm is restricted to
    default_momentum = None
    mask = 0  # 1: it takes a mask that is true where a row is kept; -1: where one is left out

    def __init__(self, function, claim, call=None):
        self.function, self.claim, self.call = function, claim, call
        self.parameters = None if call else parameters_of(function)
        self.default_eps = None
        if call is None and self.parameters:
            self._give_roles()
        roles = {p.role for p in self.parameters or ()}
        guessed = call is not None or not self.parameters
        self.has_gain = guessed or "gain" in roles
        self.has_bias = claim.norm != "rmsnorm" if guessed else "bias" in roles
        self.has_state = "running_mean" in roles and claim.extent == "batch"
        self.mask = mask_of(self.parameters)

    def _give_roles(self):
        """x is the first parameter where no name says so."""
        if not any(p.role == "x" for p in self.parameters):
            self.parameters[0].role = "x"
        for p in self.parameters:
            if p.role == "eps" and isinstance(p.default, float):
                self.default_eps = p.default
            if not p.role and p.is_needed:
                raise ValueError(f"parameter {p.name!r} of {name_of(self.function)} has no known "
                                 "role: say how it is called with call=, or --call")

    def invoke(self, x, gain, bias, state=None):
        """y, in the arrays of the library. `state`: running_mean, running_var and training."""
        if self.call is not None:
            return first_of(self.call(self.function, x, gain, bias))
        if not self.parameters:
            return first_of(self.function(*(t for t in (x, gain, bias) if t is not None)))
        given = {"x": x, "gain": gain, "bias": bias, "groups": self.claim.groups,
                 "momentum": self.claim.momentum, "training": True, "offset": self.claim.offset,
                 "shape": tuple(getattr(x, "shape", ())[-1:]), "eps": self._eps(), **(state or {})}
        placed, named = [], {}
        for p in self.parameters:
            if p.role and (p.role in given or p.is_needed) and not self._leaves(p, state):
                named[p.name] = given.get(p.role)
            elif not p.by_name and not p.is_needed:
                continue
        return first_of(self.function(*placed, **named)) if not self._by_place() else \
            first_of(self.function(*(named.get(p.name, p.default) for p in self.parameters
                                     if not p.by_name)))

    def _by_place(self):
        """Ops and functions of C take arguments by their place."""
        return not inspect.isfunction(self.function) and not hasattr(self.function, "__wrapped__") \
            and getattr(getattr(self.function, "default", self.function), "_schema", None) \
            is not None

    def _leaves(self, p, state):
        """Whether the default of a parameter stays."""
        if p.is_needed:
            return False
        if p.role == "eps":
            return self.claim.eps is None and isinstance(p.default, float)
        if p.role in ("groups", "offset"):
            return p.default is not None
        return p.role in ("training", "momentum", *STATE) and state is None \
            and not (p.role == "training" and self.has_state)

    def _eps(self):
        return self.claim.used_eps


def mask_of(parameters):
    names = [p.name for p in parameters or () if p.role == "mask"]
    return 0 if not names else -1 if names[0] in LEAVES_OUT else 1


def first_of(result):
    """y of a function that returns y and more, such as statistics or a residual."""
    if isinstance(result, (tuple, list)) and result and hasattr(result[0], "shape"):
        return result[0]
    return result


def name_of(function):
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) \
        or type(function).__name__
    return f"{module}.{name}".strip(".")


class ModuleBinding(Binding):
    """A module of PyTorch, with its own parameters replaced for each call; or a class of modules,
    of which one is made for each width."""

    def __init__(self, module, claim):
        self.claim, self.call, self.parameters = claim, None, None
        self.is_class = isinstance(module, type)
        self.function, self.made, self.is_training = module, {}, True
        self.default_eps = None
        probe = self.of_width(claim.groups * 4) if self.is_class else module
        eps = getattr(probe, "eps", None) or getattr(probe, "variance_epsilon", None)
        self.default_eps = float(eps) if isinstance(eps, (int, float)) else None
        self.names = {role: name for role in ("gain", "bias") for name in NAMES[role]
                      if isinstance(getattr(probe, name, None), torch.Tensor)}
        self.has_gain, self.has_bias = "gain" in self.names, "bias" in self.names
        self.has_state = isinstance(getattr(probe, "running_mean", None), torch.Tensor) \
            and claim.extent == "batch"
        self.default_momentum = getattr(probe, "momentum", None)
        masks = [p for p in parameters_of(probe.forward) or () if p.role == "mask"]
        self.mask, self.mask_names = mask_of(masks), [p.name for p in masks]
        if not self.is_class:
            sizes = [p.numel() for p in probe.parameters()]
            self.width = sizes[0] if sizes else None
        self.dims = {"BatchNorm1d": (2, 3), "BatchNorm2d": (4,), "InstanceNorm1d": (3,),
                     "InstanceNorm2d": (4,)}.get(type(probe).__name__, ())

    def of_width(self, width):
        """The module for rows or channels of this width."""
        if not self.is_class:
            return self.function
        if width not in self.made:
            given = {}
            for p in parameters_of(self.function) or ():
                if p.name in NAMES["groups"]:
                    given[p.name] = self.claim.groups
                elif p.name in NAMES["width"] and p.is_needed:
                    given[p.name] = width
                elif p.role == "eps" and (self.claim.eps is not None or p.default is None):
                    given[p.name] = self.claim.used_eps
                elif p.name == "affine":
                    given[p.name] = True
            self.made[width] = self.function(**given)
        return self.made[width]

    def invoke(self, x, gain, bias, state=None):
        module = self.of_width(x.shape[-1] if self.claim.of_rows else x.shape[1])
        module.train(state is None or state.get("training", True))
        given = {self.names[role]: value for role, value in (("gain", gain), ("bias", bias))
                 if value is not None}
        given |= {k: v for k, v in (state or {}).items() if k in STATE}
        if self.has_state and state is None:
            given |= {k: getattr(module, k).clone() for k in STATE}
        masks = {n: state["mask"] for n in self.mask_names[:1]} if "mask" in (state or {}) else {}
        return first_of(torch.func.functional_call(module, given, (x,), masks))


def binding_of(function, claim, call=None):
    is_module = isinstance(function, torch.nn.Module) or (
        isinstance(function, type) and issubclass(function, torch.nn.Module))
    return ModuleBinding(function, claim) if is_module and call is None \
        else Binding(function, claim, call)

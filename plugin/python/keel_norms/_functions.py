"""The functions of the norms, alike for NumPy and JAX, made from the table of norms."""
import difflib

from . import _given, _library
from ._norms import NORMS, SUMS


def option(norm, options, name):
    """Takes `state` or an input out of the options; None where it is not given. What the norm does
    not have stays among the options, so that keel refuses it."""
    has = NORMS[norm].states if name == "state" else name in _library.ops()[norm].inputs
    return options.pop(name, None) if has else None


def _further(norm, given, options):
    """The options with the parameters that were given by place behind gain and bias."""
    names = NORMS[norm].more
    if len(given) > len(names):
        raise TypeError(f"[{norm}] expected at most {len(names)} arrays by place behind those of "
                        f"every norm, got {len(given)}")
    if twice := set(names[:len(given)]) & options.keys():
        raise TypeError(f"[{norm}] {', '.join(sorted(twice))}: got two values")
    return {**dict(zip(names, given)), **options}


def function(norm, forward, result):
    """The function of a norm: with gain and bias, with a gain that must be given, or neither.
    Further parameters come by place behind these or by name.
    It calls forward(norm, x, affine, options); `result` says in words what it returns."""
    facts = NORMS[norm]
    if "dbias" in facts.gradients:
        def apply(x, gain=None, bias=None, *more, **options):
            return forward(norm, x, (gain, bias), _further(norm, more, options))
    elif "dgain" in facts.gradients:
        def apply(x, gain, *more, **options):
            return forward(norm, x, (gain,), _further(norm, more, options))
    else:
        def apply(x, **options):
            return forward(norm, x, (), options)
    inputs, attributes = _library.ops()[norm][:2]
    options = [*facts.more, *(["state"] if facts.states else []),
               *(["mask"] if "mask" in inputs else []),
               *(f"{name}={default}" for name, default in attributes.items())]
    apply.__name__ = apply.__qualname__ = norm
    apply.__doc__ = (f"{facts.formula}.\n\n{facts.source}. Options: {', '.join(options)}. "
                     f"Returns {result}.")
    return apply


def sum_function(norm, forward, result):
    """The function of a residual sum and the norm of it: forward(norm, values, attributes), with
    the inputs by name; `result` says in words what it returns."""
    def apply(x, residual, gain=None, bias=None, **options):
        return forward(norm, {"x": x, "residual": residual, "gain": gain, "bias": bias}, options)
    options = ", ".join(f"{name}={default}"
                        for name, default in _library.ops()[norm].defaults.items())
    apply.__name__ = apply.__qualname__ = norm
    apply.__doc__ = (f"{SUMS[norm].formula}.\n\n{SUMS[norm].source}. x and residual have one type "
                     f"and one shape. Options: {options}. Returns {result}.")
    return apply


def rows(norm, x):
    """x as the norms over the batch take it: (rows, channels), or an image."""
    if not NORMS[norm].is_column or x.ndim in (2, 4):
        return x
    if x.ndim == 0:
        raise _library.KeelError(f"[{norm}] x: expected (..., channels), got ()")
    return x.reshape(-1, x.shape[-1])


def state_shape(norm, state, channels, m):
    """The shape of a norm's state, of _norms.State. Where m is None it is the norm's default."""
    if m is None:
        m = int(_library.ops()[norm].defaults.get("m", 1))
    _given.expect_size("channels", channels, 0)
    _given.expect_size("m", m)
    return {"channels": (channels,), "scalar": (), "ring": (m, channels)}[state.shape]


def states_of(norm):
    """The facts of a norm's states by name."""
    if norm not in NORMS:
        near = difflib.get_close_matches(norm, NORMS, 1, 0)
        raise _library.KeelError(f"norm {norm}: expected one of {', '.join(NORMS)}"
                                 + (f"; nearest: {near[0]}" if near else ""))
    return NORMS[norm].states


def expect_options(norm, options):
    """Refuses the state, mask or input that a norm does not have: no attribute is one."""
    for name, value in options.items():
        if name not in _library.ops()[norm].defaults and (
                name in ("state", "mask") or getattr(value, "shape", ())):
            raise TypeError(f"[{norm}] it has no {name}")


def checked_state(norm, state):
    """The state, refused where a part of it is missing."""
    if not hasattr(state, "keys"):
        raise TypeError(f"[{norm}] state: expected a dictionary of {', '.join(NORMS[norm].states)},"
                        f" got {type(state).__name__}")
    if missing := NORMS[norm].states.keys() - state.keys():
        raise ValueError(f"state: expected {', '.join(NORMS[norm].states)}, "
                         f"got no {', '.join(sorted(missing))}")
    return state


def backward_attributes(norm, attributes, has_bias):
    """The attributes of the backward op that belong to those of a forward."""
    known = _library.ops()[norm + "_backward"].defaults
    kept = {name: value for name, value in dict(attributes).items() if name in known}
    return {**kept, "wants_dbias": has_bias} if "wants_dbias" in known else kept

"""keel's norms on NumPy's arrays, forward and explicit backward, on the calling thread.

    from keel_norms import numpy as kn

    step = kn.layer_norm(x, gain, bias, eps=1e-6)
    step.y
    gradients = step.backward(dy)          # gradients.dx, gradients.dgain, gradients.dbias

    state = kn.first_state("power_norm", channels=64)
    step = kn.power_norm(x, gain, bias, state=state)
    gradients = step.backward(dy)
    state = gradients.next_state           # for the next batch

Arrays are float32, or float64, which keel's reference backend computes. What is not an array of
NumPy but has __dlpack__ (a tensor of PyTorch or JAX in the host's memory) is taken, too, without
a copy; results are arrays of NumPy, which have __dlpack__ themselves. An array that is not
contiguous is read in place by norms of rows whose rows are, such as the heads of a projection, and
else copied. Attributes have keel's names
and defaults (`keel list norms`, src/ops/norm/NAME.h).

A norm over the batch takes x as (..., channels), whose rows it numbers in order, or as images
(n, channels, h, w), and a mask (...) of the rows, of any type: rows with 0 are padding, all others
count. A mask with NaN, infinities or another shape is refused."""
import numpy as np

from . import _arrays, _functions, _given, _library
from ._norms import NORMS, SUMS

_DTYPES = {np.dtype(np.float32): _library.F32, np.dtype(np.float64): _library.F64,
           np.dtype(np.int32): _library.I32, np.dtype(np.uint8): _library.U8}
_TYPES = {number: dtype for dtype, number in _DTYPES.items()}


def _of(value, name):
    """An array of NumPy, without a copy where that can be."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name}: expected an array without a mask, which would be lost")
    is_foreign = not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__")
    return np.asarray(np.from_dlpack(value) if is_foreign else value)


def _array(value, name, types=(np.float32, np.float64)):
    """An array that keel reads in place where it can."""
    if value is None:
        return None
    array = _of(value, name)
    if array.dtype not in types:
        expected = " or ".join(np.dtype(t).name for t in types)
        raise TypeError(f"{name}: expected {expected}, got {array.dtype}")
    return np.require(array, requirements=["A"])


def _needed(value, name):
    if value is None:
        raise TypeError(f"{name}: expected an array, got None")
    return _array(value, name)


def _empty_aligned(size):
    room = np.empty(size + _library.ALIGNMENT, np.uint8)
    return room[-room.ctypes.data % _library.ALIGNMENT:][:size]


def _read_in_place(plan, inputs):
    """The strides of inputs that are not contiguous, by place. Those that keel does not take are
    replaced by copies."""
    strides = {}
    for place, array in enumerate(inputs):
        if array is None or array.flags.c_contiguous:
            continue
        steps = [divmod(step, array.itemsize) for step in array.strides]
        found = [step for step, _ in steps]
        if any(rest for _, rest in steps) or not plan.takes_strides(place, found):
            inputs[place] = np.require(array, requirements=["C"])
        else:
            strides[place] = found
    return strides


def call(op, inputs, attributes=()):
    """Runs one op of keel/norm.h. `inputs` are arrays by place, None for an absent one. Returns the
    list of outputs; one that does not apply has the shape (0,)."""
    inputs = [_array(a, name, tuple(_DTYPES)) for a, name in
              zip(inputs, _library.input_names(op, len(inputs)))]
    types = tuple(None if a is None else (_DTYPES[a.dtype], a.shape) for a in inputs)
    plan = _library.plan(op, _library.attributes_text(attributes), types)
    strides = _read_in_place(plan, inputs)
    outputs = [np.empty(sizes, _TYPES[dtype]) for dtype, sizes in plan.outputs]
    workspace = _empty_aligned(plan.workspace)
    plan.run([None if a is None else a.ctypes.data for a in inputs],
             [a.ctypes.data for a in outputs], workspace.ctypes.data, strides=strides)
    return outputs


def first_state(norm, channels, m=None, dtype=np.float32):
    """The state of a norm over the batch before its first step, as a dictionary of arrays. `m` is
    that of mabn or unified_norm, by default the one that they have."""
    return {name: np.full(_functions.state_shape(norm, state, channels, m), state.first,
                          np.int32 if name == "step" else dtype)
            for name, state in _functions.states_of(norm).items()}


class Gradients:
    """dx, dgain and dbias (None where the input was absent), those of further parameters (dalpha),
    and the next state."""

    def __init__(self, dx, next_state, dgain=None, dbias=None, **more):
        self.dx, self.dgain, self.dbias, self.next_state = dx, dgain, dbias, next_state
        for name, gradient in more.items():
            setattr(self, name, gradient)


class Step:
    """A forward: y, all outputs by name, and what the backward needs."""

    def __init__(self, norm, values, attributes, shape):
        self._norm, self._attributes, self._shape = norm, attributes, shape
        inputs = _library.ops()[norm].inputs
        results = call(norm, [values.get(name) for name in inputs], attributes)
        self.outputs = dict(zip(NORMS[norm].outputs, results))
        self._values = {**values, **self.outputs}
        self.y = self.outputs["y"].reshape(shape)

    def _next_state(self, results):
        """The states after this step; those whose next value does not exist stay as they are."""
        states = {}
        for name, state in NORMS[self._norm].states.items():
            following = results.get(state.next)
            old = self._values.get(name)
            states[name] = old if following is None or following.shape != old.shape else following
        return states

    @property
    def next_state(self):
        """The state after the forward. States that the backward moves are as they were."""
        return self._next_state(self.outputs)

    def backward(self, dy):
        """The gradients of the sum of y * dy, as the norm defines them."""
        op = self._norm + "_backward"
        inputs = _library.ops()[op].inputs
        dy = _needed(dy, "dy")
        if dy.shape != self._shape:
            raise ValueError(f"dy: expected {self._shape}, got {dy.shape}")
        values = {**self._values, "dy": dy.reshape(self._values["x"].shape)}
        values = {name: None if NORMS[self._norm].lacks(value) else value
                  for name, value in values.items()}
        attributes = _functions.backward_attributes(self._norm, self._attributes,
                                                    self._values.get("bias") is not None)
        results = dict(zip(NORMS[self._norm].gradients,
                           call(op, [values.get(name) for name in inputs], attributes)))
        given = {"d" + name: results.get("d" + name) if self._values.get(name) is not None else None
                 for name in ("gain", "bias", *NORMS[self._norm].more)}
        return Gradients(results["dx"].reshape(self._shape),
                         self._next_state({**self.outputs, **results}), **given)


def _forward(norm, x, affine, options):
    """`affine` are gain and bias; `options` are state, mask and the attributes."""
    facts = NORMS[norm]
    x = _needed(x, "x")
    shape = x.shape
    if affine and "dbias" not in facts.gradients:
        _needed(affine[0], "gain")
    x = _functions.rows(norm, x)
    values = {"x": x}
    values.update((name, _array(value, name)) for name, value in zip(("gain", "bias"), affine))
    attributes = dict(options)
    values.update((name, _array(_functions.option(norm, attributes, name), name))
                  for name in facts.more)
    if (mask := _functions.option(norm, attributes, "mask")) is not None:
        mask = _arrays.mask_of(norm, _of(mask, "mask"), shape[:-1])
        values["mask"] = mask.reshape(-1) if facts.is_column else mask
    state = _functions.option(norm, attributes, "state")
    if facts.states:
        values.update(_read_state(norm, x, state, attributes))
    _functions.expect_options(norm, attributes)
    return Step(norm, values, attributes, shape)


def _read_state(norm, x, state, attributes):
    channels = x.shape[1] if x.ndim == 4 else x.shape[-1]
    if state is None:
        state = first_state(norm, channels, attributes.get("m"), x.dtype)
    state = _functions.checked_state(norm, state)
    return {name: _arrays.step_of(_of(state[name], name)) if name == "step"
            else _needed(state[name], name)
            for name in NORMS[norm].states}


for _name in NORMS:
    globals()[_name] = _functions.function(_name, _forward, "a Step")


class SumStep:
    """A residual sum and the norm of it: y, sum, and all outputs by name."""

    def __init__(self, norm, values, attributes):
        self._norm, self._attributes = norm, attributes
        results = call(norm, [values.get(name) for name in _library.ops()[norm].inputs], attributes)
        self.outputs = dict(zip(SUMS[norm].outputs, results))
        self._values = {**values, **self.outputs}
        self.y, self.sum = self.outputs["y"], self.outputs["sum"]

    def backward(self, dy, dsum=None):
        """The gradients of the sum of y * dy and of sum * dsum. dx is that of x and of the
        residual."""
        op, values = self._norm + "_backward", self._values
        values = {**values, "dy": _needed(dy, "dy"), "dsum": _array(dsum, "dsum")}
        attributes = _functions.backward_attributes(self._norm, self._attributes,
                                                    values["bias"] is not None)
        results = dict(zip(SUMS[self._norm].gradients, call(
            op, [values.get(name) for name in _library.ops()[op].inputs], attributes)))
        given = {"d" + name: None if values[name] is None else results["d" + name]
                 for name in ("gain", "bias")}
        return Gradients(results["dx"], {}, **given)


def _sum(norm, values, attributes):
    values = {name: _needed(value, name) if name in ("x", "residual") else _array(value, name)
              for name, value in values.items()}
    return SumStep(norm, values, attributes)


for _name in SUMS:
    globals()[_name] = _functions.sum_function(_name, _sum, "a SumStep")


class ModulatedStep:
    """A modulated layer norm: y, and what the backward needs."""

    def __init__(self, x, scale, shift, eps):
        self._normed = _forward("layer_norm", x, (None, None), {"eps": eps})
        self._tokens = tuple(range(1, x.ndim - 1))
        self._factor = 1 + np.expand_dims(scale, self._tokens)
        self.y = self._normed.y * self._factor + np.expand_dims(shift, self._tokens)

    def backward(self, dy):
        """The gradients of the sum of y * dy: dx, dscale and dshift. Sums over the tokens are
        formed in float64."""
        dy = _needed(dy, "dy")
        if dy.shape != self.y.shape:
            raise ValueError(f"dy: expected {self.y.shape}, got {dy.shape}")
        dscale, dshift = (terms.sum(self._tokens, np.float64).astype(self.y.dtype)
                          for terms in (dy * self._normed.y, dy))
        dx = self._normed.backward(dy * self._factor).dx
        return Gradients(dx, {}, dscale=dscale, dshift=dshift)


def modulated_layer_norm(x, scale, shift, *, eps=1e-6):
    """y = n(x) (1 + scale) + shift, where n is a layer norm of the last axis without gain and bias.

    Peebles & Xie 2023. x is (batch, ..., width); scale and shift are (batch, width) and act on all
    tokens of a sequence. They have one type. Returns a ModulatedStep."""
    x, scale, shift = _needed(x, "x"), _needed(scale, "scale"), _needed(shift, "shift")
    _given.expect_sequences("modulated_layer_norm", x.shape, scale=scale.shape, shift=shift.shape)
    for name, value in (("scale", scale), ("shift", shift)):
        if value.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype}, as x is, got {value.dtype}")
    return ModulatedStep(x, scale, shift, eps)


class WeightStep:
    """weight_norm: the weights w, and the gradients dv and dg of the sum of w * dw."""

    def __init__(self, v, g, attributes):
        self._v, self._g, self._attributes = v, g, attributes
        self.w, self._rstd = call("weight_norm", [v, g], attributes)

    def backward(self, dw):
        return tuple(call("weight_norm_backward",
                          [self._v, self._g, self._rstd, _array(dw, "dw")], self._attributes))


def weight_norm(v, g, **attributes):
    """w = g v / |v|, over the weights of a unit. Salimans & Kingma 2016. Returns a WeightStep."""
    return WeightStep(_array(v, "v"), _array(g, "g"), attributes)


__all__ = ["call", "first_state", "Gradients", "modulated_layer_norm", "ModulatedStep", "Step",
           "SumStep", "WeightStep", "weight_norm", *NORMS, *SUMS]

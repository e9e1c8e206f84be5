"""keel's norms as differentiable functions of JAX, on CPUs.

    from keel_norms import jax as kj

    y = kj.layer_norm(x, gain, bias, eps=1e-6)

    state = kj.first_state("batch_norm", channels=64)
    y, state = kj.batch_norm(x, gain, bias, state=state)

The functions work under jit, grad and vmap. They are those of keel_norms.numpy; names and
attributes are keel's. A norm over the batch returns y and the next state. All but y counts as a
constant: nothing is differentiated by way of a state.

The backwards of power_norm, mabn and unified_norm move a part of the state, nu, gz or both. JAX
gives a backward no other way out than gradients, so the gradient with respect to nu or gz is what
the backward adds to it, and 0 where the loss does not depend on y:

    gradient = jax.grad(loss, argnums=(0, 1), has_aux=True, allow_int=True)
    (by_parameters, by_state), next_state = gradient(parameters, state)
    state = kj.after_backward(next_state, by_state)

A state must be used only once in a loss: JAX adds the gradients of several uses. Next states are
not tested for numbers that are not finite. float16 and bfloat16 are computed in float32, and y then
has the type of x; weight_norm takes only float32 and float64."""
import ctypes
import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

from . import _arrays, _functions, _given, _library
from ._norms import NORMS, SUMS

_DTYPES = {jnp.dtype(jnp.float32): _library.F32, jnp.dtype(jnp.float64): _library.F64,
           jnp.dtype(jnp.int32): _library.I32, jnp.dtype(jnp.uint8): _library.U8}
_TYPES = {number: dtype for dtype, number in _DTYPES.items()}
_NARROW = (jnp.float16, jnp.bfloat16)


@functools.cache
def _register():
    """Tells XLA of the handler in libkeel_norm_jax.so, which lies beside libkeel_norm.so."""
    _library.load()  # what the handler calls
    path = os.path.join(_library.folder(), "libkeel_norm_jax.so")
    try:
        handler = ctypes.CDLL(path).keel_norm_jax
    except (OSError, AttributeError) as error:
        raise ImportError(f"keel_norms: cannot load {path}: {error}; it is built where meson is "
                          "told -Djax_headers=FOLDER") from error
    jax.ffi.register_ffi_target("keel_norm", jax.ffi.pycapsule(handler), platform="cpu")


_register()


def call(op, inputs, attributes=()):
    """Runs one op of keel/norm.h. `inputs` are arrays by place, None for an absent one. Returns the
    list of outputs; one that does not apply has the shape (0,)."""
    text = _library.attributes_text(attributes)
    inputs = [None if a is None else jnp.asarray(a) for a in inputs]
    given = [a for a in inputs if a is not None]
    for array, name in zip(inputs, _library.input_names(op, len(inputs))):
        if array is not None and array.dtype not in _DTYPES:
            raise TypeError(f"{name}: expected float32 or float64, got {array.dtype}")
    plan = _library.plan(op, text, tuple(None if a is None else (_DTYPES[a.dtype], a.shape)
                                         for a in inputs))
    results = [jax.ShapeDtypeStruct(sizes, _TYPES[dtype]) for dtype, sizes in plan.outputs]
    numbers = iter(range(len(given)))
    places = [-1 if a is None else next(numbers) for a in inputs]
    return jax.ffi.ffi_call("keel_norm", results, vmap_method="expand_dims")(
        *given, op=op, attributes=text, places=np.array(places, np.int64),
        ranks=np.array([a.ndim for a in given], np.int64))


# A norm on its inputs by name. Returns all outputs by name.
@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _norm(norm, attributes, values):
    results = call(norm, [values.get(name) for name in _library.ops()[norm].inputs], attributes)
    return dict(zip(NORMS[norm].outputs, results))


def _norm_forward(norm, attributes, values):
    outputs = _norm(norm, attributes, values)
    known = {**values, **outputs}
    wanted = _library.ops()[norm + "_backward"].inputs
    # The keys of the second dictionary say which inputs were given.
    return outputs, ({name: known[name] for name in wanted if name in known},
                     {name: () for name in values})


def _norm_backward(norm, attributes, saved, cotangents):
    kept, given = saved
    values = {name: None if NORMS[norm].lacks(value) else value for name, value in kept.items()}
    values["dy"] = cotangents["y"]
    op = norm + "_backward"
    results = dict(zip(NORMS[norm].gradients, call(
        op, [values.get(name) for name in _library.ops()[op].inputs],
        _functions.backward_attributes(norm, attributes, "bias" in given))))
    gradients = {name: results.get("d" + name) for name in given}
    for name, state in NORMS[norm].states.items():
        if state.by_backward:
            following, old = results[state.next], kept[name]
            moves = following.shape == old.shape
            gradients[name] = following - old if moves else jnp.zeros_like(old)
    return (gradients,)


_norm.defvjp(_norm_forward, _norm_backward)


def first_state(norm, channels, m=None, dtype=jnp.float32):
    """The state of a norm over the batch before its first step, as a dictionary of arrays. `m` is
    that of mabn or unified_norm, by default the one that they have."""
    return {name: jnp.full(_functions.state_shape(norm, state, channels, m), state.first,
                           jnp.int32 if name == "step" else dtype)
            for name, state in _functions.states_of(norm).items()}


def after_backward(next_state, gradients):
    """The next state with what the backward moved, nu or gz: each has its gradient added. The
    gradients are those with respect to `state` or to a part of it."""
    moved = {name: next_state[name] + gradients[name] for facts in NORMS.values()
             for name, state in facts.states.items() if state.by_backward and name in gradients}
    return {**next_state, **moved}


def _wide(value):
    value = jnp.asarray(value)
    return value.astype(jnp.float32) if value.dtype in _NARROW else value


def _mask(norm, mask, shape):
    """A mask as 0 and 1. Its numbers are looked at where there are some: not within jit."""
    if not isinstance(mask, jax.core.Tracer):
        return jnp.asarray(_arrays.mask_of(norm, mask, shape))
    is_real = any(jnp.issubdtype(mask.dtype, kind)
                  for kind in (jnp.bool_, jnp.integer, jnp.floating))
    _given.expect_real(norm, is_real, mask.dtype)
    _given.expect_shape(norm, mask.shape, shape)
    return (mask != 0).astype(jnp.uint8)


def _step(step):
    if not isinstance(step, jax.core.Tracer):
        return jnp.asarray(_arrays.step_of(step))
    if step.dtype != jnp.int32:
        raise TypeError(f"step: expected int32, got {step.dtype}")
    return step


def _forward(norm, x, affine, options):
    """`affine` are gain and bias; `options` are state, mask and the attributes."""
    facts, x = NORMS[norm], jnp.asarray(x)
    rows = _functions.rows(norm, _wide(x))
    values = {"x": rows, "gain": affine[0] if affine else None, "bias": (*affine, None, None)[1]}
    attributes = dict(options)
    values.update((name, _functions.option(norm, attributes, name)) for name in facts.more)
    if (mask := _functions.option(norm, attributes, "mask")) is not None:
        mask = _mask(norm, mask, x.shape[:-1])
        values["mask"] = mask.reshape(-1) if facts.is_column else mask
    state = _functions.option(norm, attributes, "state")
    if facts.states:
        channels = x.shape[1] if x.ndim == 4 else x.shape[-1]
        if state is None:
            state = first_state(norm, channels, attributes.get("m"), rows.dtype)
        state = _functions.checked_state(norm, state)
        values.update((name, _step(state[name]) if name == "step" else state[name])
                      for name in facts.states)
    _functions.expect_options(norm, attributes)
    values = {name: _wide(value) for name, value in values.items() if value is not None}
    outputs = _norm(norm, tuple(sorted(attributes.items())), values)
    y = outputs["y"].reshape(x.shape).astype(x.dtype)
    return (y, _next_state(norm, outputs, values)) if facts.states else y


def _next_state(norm, outputs, values):
    """The states after a forward; those whose next value does not exist stay as they are."""
    states = {}
    for name, state in NORMS[norm].states.items():
        following, old = outputs.get(state.next), values[name]
        moves = following is not None and following.shape == old.shape
        states[name] = jax.lax.stop_gradient(following if moves else old)
    return states


for _name in NORMS:
    globals()[_name] = _functions.function(
        _name, _forward, "y and the next state" if NORMS[_name].states else "y")


# A residual sum and the norm of it, on its inputs by name. Returns y and the sum.
@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sum_norm(norm, attributes, values):
    results = call(norm, [values.get(name) for name in _library.ops()[norm].inputs], attributes)
    return results[0], results[-1]


def _sum_forward(norm, attributes, values):
    results = call(norm, [values.get(name) for name in _library.ops()[norm].inputs], attributes)
    known = {**values, **dict(zip(SUMS[norm].outputs, results))}
    wanted = _library.ops()[norm + "_backward"].inputs
    # The keys of the second dictionary say which inputs were given.
    return (results[0], results[-1]), ({name: known[name] for name in wanted if name in known},
                                       {name: () for name in values})


def _sum_backward(norm, attributes, saved, cotangents):
    kept, given = saved
    op, values = norm + "_backward", {**kept, **dict(zip(("dy", "dsum"), cotangents))}
    results = dict(zip(SUMS[norm].gradients, call(
        op, [values.get(name) for name in _library.ops()[op].inputs],
        _functions.backward_attributes(norm, attributes, "bias" in given))))
    return ({name: results["dx" if name == "residual" else "d" + name] for name in given},)


_sum_norm.defvjp(_sum_forward, _sum_backward)


def _sum(norm, values, attributes):
    """y and the sum. float16 and bfloat16 are added as JAX does, and the norm takes the result."""
    given = {name: jnp.asarray(value) for name, value in values.items() if value is not None}
    x, residual = given.get("x"), given.get("residual")
    if x is not None and residual is not None and x.dtype == residual.dtype and x.dtype in _NARROW:
        total = x + residual
        plain = globals()[norm.removeprefix("add_")]
        return plain(total, values["gain"], values["bias"], **attributes), total
    given = {name: _wide(value) if name in ("gain", "bias") else value
             for name, value in given.items()}
    return _sum_norm(norm, tuple(sorted(attributes.items())), given)


for _name in SUMS:
    globals()[_name] = _functions.sum_function(_name, _sum, "y and the sum")


def modulated_layer_norm(x, scale, shift, *, eps=1e-6):
    """y = n(x) (1 + scale) + shift, where n is a layer norm of the last axis without gain and bias.

    Peebles & Xie 2023. x is (batch, ..., width); scale and shift are (batch, width) and act on all
    tokens of a sequence. Returns y."""
    x, scale, shift = jnp.asarray(x), jnp.asarray(scale), jnp.asarray(shift)
    _given.expect_sequences("modulated_layer_norm", x.shape, scale=scale.shape, shift=shift.shape)
    normed = _forward("layer_norm", _wide(x), (), {"eps": eps})
    scale, shift = (jnp.expand_dims(_wide(value), tuple(range(1, x.ndim - 1)))
                    for value in (scale, shift))
    return (normed * (1 + scale) + shift).astype(x.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _weight_norm(attributes, v, g):
    return call("weight_norm", [v, g], attributes)[0]


def _weight_norm_forward(attributes, v, g):
    w, rstd = call("weight_norm", [v, g], attributes)
    return w, (v, g, rstd)


def _weight_norm_backward(attributes, saved, dw):
    return tuple(call("weight_norm_backward", [*saved, dw], attributes))


_weight_norm.defvjp(_weight_norm_forward, _weight_norm_backward)


def weight_norm(v, g, **attributes):
    """w = g v / |v|, over the weights of a unit. Salimans & Kingma 2016."""
    return _weight_norm(tuple(sorted(attributes.items())), jnp.asarray(v), jnp.asarray(g))


__all__ = ["after_backward", "call", "first_state", "modulated_layer_norm", "weight_norm", *NORMS,
           *SUMS]

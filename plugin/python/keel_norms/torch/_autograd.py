"""keel's norms as differentiable functions: the explicit backward of each, and its states.

What the backward needs and a later forward may overwrite (buffers of a module) is not saved: the
tensors that a backward moves, nu and gz, are held by the context and written in place."""
import torch
from torch.autograd.function import once_differentiable

from .. import _library
from .._norms import NORMS
from . import _ops


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(norm, attributes, shards, *tensors):
        return _ops.call(norm, tensors, attributes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        norm, attributes, shards, *tensors = inputs
        ctx.norm, ctx.attributes, ctx.shards = norm, attributes, shards
        ctx.mark_non_differentiable(*output[1:])
        names = _ops.OPS[norm].inputs
        facts = NORMS[norm]
        values = {**dict(zip(names, tensors)), **dict(zip(facts.outputs, output))}
        ctx.moved = {name: values[name] for name, state in facts.states.items()
                     if state.by_backward}
        wanted = _ops.OPS[norm + "_backward"].inputs
        saved = [None if name in ctx.moved else values.get(name) for name in wanted]
        ctx.save_for_backward(*(None if facts.lacks(value) else value for value in saved))
        ctx.has_bias = values.get("bias") is not None

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, *unused):
        op = ctx.norm + "_backward"
        names, known = _ops.OPS[op]
        values = {**dict(zip(names, ctx.saved_tensors)), **ctx.moved, "dy": dy.contiguous()}
        own = {}
        if ctx.shards is not None:
            values["sums"], own = ctx.shards.gradient_sums(ctx.norm, values, _given(ctx))
        results = _ops.call(op, [values.get(name) for name in names],
                            _backward_attributes(ctx, known))
        found = {**dict(zip(NORMS[ctx.norm].gradients, results)), **own}
        _move(ctx, found)
        return (None, None, None, *(_gradient(ctx, found, place, name) for place, name in
                              enumerate(_ops.OPS[ctx.norm].inputs)))


def _given(ctx):
    return dict(pair.split("=", 1) for pair in ctx.attributes.split())


def _backward_attributes(ctx, known):
    attributes = {name: value for name, value in _given(ctx).items() if name in known}
    if "wants_dbias" in known:
        attributes["wants_dbias"] = ctx.has_bias
    return _library.attributes_text(attributes)


def _move(ctx, found):
    """Writes the states that the backward moves, unless a number is not finite."""
    for name, state in ctx.moved.items():
        following = found[NORMS[ctx.norm].states[name].next]
        if following.shape == state.shape:
            state.copy_(if_finite(following, state))


def if_finite(following, old):
    """The next value of a state, or the old one where a number of it is not finite."""
    return torch.where(torch.isfinite(following).all(), following, old)


def _gradient(ctx, found, place, name):
    if not ctx.needs_input_grad[place + 3] or name not in ("x", "gain", "bias"):
        return None
    return found.get("d" + name)


def apply(norm, values, attributes, shards=None):
    """All outputs of a norm by name, of which y can be differentiated by x, gain and bias. `values`
    are its inputs by name; a missing one is absent. float16 and bfloat16 are computed in float32;
    y then has the type of x. `shards` are those of a batch on several processes."""
    x = values["x"]
    values = {name: _widened(value) for name, value in values.items()}
    if shards is not None:
        values.update(shards.statistics(norm, values, attributes))
    tensors = [values.get(name) for name in _ops.OPS[norm].inputs]
    results = _Norm.apply(norm, _library.attributes_text(attributes), shards, *tensors)
    outputs = dict(zip(NORMS[norm].outputs, results))
    return {**outputs, "y": outputs["y"].to(x.dtype)}


def _widened(value):
    narrow = value is not None and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if narrow else value

"""keel's norms as differentiable functions: the explicit backward of each, and its states.

What the backward needs and a later forward may overwrite (buffers of a module) is not saved: the
tensors that a backward moves, nu and gz, are held by the context and written in place."""
import functools

import torch
from torch.autograd.function import once_differentiable

from .. import _library
from .._norms import NORMS
from . import _ops


class Recipe:
    """What a norm with its attributes saves, and what its backward is given and gives."""

    def __init__(self, norm, text):
        facts, inputs = NORMS[norm], _ops.OPS[norm].inputs
        known = (*inputs, *facts.outputs)
        self.norm, self.op, self.facts = norm, norm + "_backward", facts
        self.attributes = dict(pair.split("=", 1) for pair in text.split())
        self.inputs, backward_attributes = _ops.OPS[self.op]
        self.moved = tuple(name for name, state in facts.states.items() if state.by_backward)
        # For each input of the backward its place among inputs and outputs of the forward.
        self.saved = tuple(known.index(name) if name in known and name not in self.moved else None
                           for name in self.inputs)
        self.moved_places = tuple(inputs.index(name) for name in self.moved)
        self.bias = inputs.index("bias") if "bias" in inputs else None
        self.gradients = tuple("d" + name if name in ("x", "gain", "bias") else None
                               for name in inputs)
        kept = {name: value for name, value in self.attributes.items()
                if name in backward_attributes}
        self.texts = {wants: _library.attributes_text(
            {**kept, "wants_dbias": wants} if "wants_dbias" in backward_attributes else kept)
            for wants in (False, True)}


_kept_recipe = functools.lru_cache(maxsize=1024)(Recipe)


def _recipe(norm, text):
    return Recipe(norm, text) if torch.compiler.is_compiling() else _kept_recipe(norm, text)


def _keep(ctx, given, tensors, outputs):
    """Saves for the backward. `given` are norm, attributes and shards."""
    norm, text, ctx.shards = given
    recipe = ctx.recipe = _recipe(norm, text)
    ctx.mark_non_differentiable(*outputs[1:])
    ctx.set_materialize_grads(False)
    known = (*tensors, *outputs)
    ctx.save_for_backward(*[None if place is None else known[place] for place in recipe.saved])
    ctx.moved = [tensors[place] for place in recipe.moved_places]
    ctx.has_bias = recipe.bias is not None and tensors[recipe.bias] is not None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, norm, text, shards, *tensors):
        outputs = _ops.call(norm, [_widened(tensor) for tensor in tensors], text)
        _keep(ctx, (norm, text, shards), tensors, outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, *unused):
        if dy is None:  # nothing depends on y
            return (None,) * len(ctx.needs_input_grad)
        recipe = ctx.recipe
        values = dict(zip(recipe.inputs, ctx.saved_tensors))
        if recipe.facts.is_column:
            values = {name: None if recipe.facts.lacks(value) else value
                      for name, value in values.items()}
        values.update(zip(recipe.moved, map(_widened, ctx.moved)), dy=dy.contiguous())
        own = {}
        if ctx.shards is not None:
            values["sums"], own = ctx.shards.gradient_sums(recipe.norm, values, recipe.attributes)
        results = _ops.call(recipe.op, [values.get(name) for name in recipe.inputs],
                            recipe.texts[ctx.has_bias])
        found = {**dict(zip(recipe.facts.gradients, results)), **own}
        _move(recipe, ctx.moved, found)
        return (None, None, None, *[found.get(name) if name and needed else None for name, needed
                                    in zip(recipe.gradients, ctx.needs_input_grad[3:])])


class _TransformedNorm(torch.autograd.Function):
    """The same for torch.func, in the style that it asks for; a call takes three times as long."""

    @staticmethod
    def forward(norm, text, shards, *tensors):
        return _ops.call(norm, [_widened(tensor) for tensor in tensors], text)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _keep(ctx, inputs[:3], inputs[3:], output)

    backward = _Norm.backward


def _move(recipe, states, found):
    """Writes the states that the backward moves, unless a number is not finite."""
    for name, state in zip(recipe.moved, states):
        following = found[recipe.facts.states[name].next]
        if following.shape == state.shape:
            state.copy_(torch.where(all_finite([following]), following, state))


def all_finite(values):
    """Whether all numbers are finite, as a tensor: nobody waits for it."""
    found = [torch.isfinite(value).all() for value in values]
    return functools.reduce(torch.logical_and, found)


def _function():
    # torch.autograd.Function asks the same.
    is_transformed = not torch.compiler.is_compiling() and (
        torch._C._are_functorch_transforms_active())
    return _TransformedNorm if is_transformed else _Norm


_kept_text = functools.lru_cache(maxsize=1024)(_library.attributes_text)


def _text(attributes):
    """Attributes as the library reads them."""
    if torch.compiler.is_compiling():
        return _library.attributes_text(attributes)
    return _kept_text(tuple(attributes.items()))


def apply(norm, values, attributes, shards=None):
    """All outputs of a norm by name, of which y can be differentiated by x, gain and bias. `values`
    are its inputs by name; a missing one is absent. float16 and bfloat16 are computed in float32;
    y then has the type of x. `shards` are those of a batch on several processes."""
    dtype = values["x"].dtype
    # The backward writes what it moves into the tensor itself, not into a wide copy of it.
    wide = {name: value if name in _MOVED else _widened(value) for name, value in values.items()}
    if shards is not None:
        wide.update(shards.statistics(norm, wide, attributes))
    tensors = [wide.get(name) for name in _ops.OPS[norm].inputs]
    results = _function().apply(norm, _text(attributes), shards, *tensors)
    outputs = dict(zip(NORMS[norm].outputs, results))
    if outputs["y"].dtype != dtype:
        outputs["y"] = outputs["y"].to(dtype)
    return outputs


_NARROW = (torch.float16, torch.bfloat16)
# All states that a backward moves.
_MOVED = frozenset(name for facts in NORMS.values() for name, state in facts.states.items()
                   if state.by_backward)


def _widened(value):
    return value.float() if value is not None and value.dtype in _NARROW else value

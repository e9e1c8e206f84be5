"""keel's norms as differentiable functions: the explicit backward of each, and its states.

What the backward needs and a later forward may overwrite (buffers of a module) is not saved: the
tensors that a backward moves, nu and gz, are held by the context and written in place."""
import functools
import operator

import torch
from torch import is_grad_enabled
from torch._C import _are_functorch_transforms_active as _are_transforms_active
from torch.autograd.function import once_differentiable
from torch.compiler import is_compiling

from .. import _library
from .._norms import ALL, NORMS
from . import _ops


class Recipe:
    """The tensors that a norm with its attributes saves, and its backward's inputs and outputs."""

    def __init__(self, norm, text):
        facts, inputs = ALL[norm], _ops.OPS[norm].inputs
        known = (*inputs, *facts.outputs)
        self.text = text
        self.norm, self.op, self.facts = norm, norm + "_backward", facts
        self.attributes = dict(pair.split("=", 1) for pair in text.split())
        self.inputs, backward_attributes = _ops.OPS[self.op][:2]
        self.moved = tuple(name for name, state in facts.states.items() if state.by_backward)
        # For each input of the backward its place among inputs and outputs of the forward.
        self.saved = tuple(known.index(name) if name in known and name not in self.moved else None
                           for name in self.inputs)
        self.saved_or_none = operator.itemgetter(*[-1 if place is None else place
                                                   for place in self.saved])
        self.moved_places = tuple(inputs.index(name) for name in self.moved)
        self.bias = inputs.index("bias") if "bias" in inputs else None
        self.gradients = tuple("d" + name if "d" + name in facts.gradients else None
                               for name in inputs)
        kept = {name: value for name, value in self.attributes.items()
                if name in backward_attributes}
        self.texts = {wants: _library.attributes_text(
            {**kept, "wants_dbias": wants} if "wants_dbias" in backward_attributes else kept)
            for wants in (False, True)}
        # Places of what a backward moves and of dy, or dw, among its inputs.
        self.moved_inputs = tuple(map(self.inputs.index, self.moved))
        self.dy = self.inputs.index("d" + facts.outputs[0])
        # For each input of the forward the place of its gradient among the backward's outputs.
        self.places = tuple(facts.gradients.index(name) if name in facts.gradients else None
                            for name in self.gradients)


_kept_recipe = functools.lru_cache(maxsize=1024)(Recipe)


def recipe_of(norm, text):
    return Recipe(norm, text) if is_compiling() else _kept_recipe(norm, text)


def _keep(ctx, given, tensors, outputs):
    """Saves for the backward. `given` are norm, attributes and shards."""
    norm, text, ctx.shards = given
    recipe = ctx.recipe = recipe_of(norm, text)
    ctx.mark_non_differentiable(*outputs[1:])
    ctx.set_materialize_grads(False)
    known = (*tensors, *outputs)
    ctx.save_for_backward(*[None if place is None else known[place] for place in recipe.saved])
    ctx.moved = [tensors[place] for place in recipe.moved_places]
    ctx.has_bias = recipe.bias is not None and tensors[recipe.bias] is not None


class _Once(torch.autograd.Function):
    """Hands gradients on. Their own gradient, by the tensors that they were computed from, is an
    error: without it the part of a loss that is made of gradients would silently have none."""

    @staticmethod
    def forward(norm, count, *tensors):
        return tensors[:count]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.norm = inputs[0]

    @staticmethod
    def backward(ctx, *unused):
        raise RuntimeError(f"[{ctx.norm}] has no second derivative: a gradient that was computed "
                           "with create_graph=True, or by torch.func, cannot be differentiated "
                           "again")


def _once(norm, ctx, dy, gradients):
    """Gradients of a backward, where a second derivative may follow."""
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return once(norm, gradients, [dy, *[t for t in ctx.saved_tensors if t is not None]])


def once(norm, gradients, sources):
    """The gradients, which were computed from the tensors `sources`; their own gradient by these is
    an error."""
    return _Once.apply(norm, len(gradients), *gradients, *sources)


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
        values.update(zip(recipe.moved, map(_widened, ctx.moved)))
        values[recipe.inputs[recipe.dy]] = dy.contiguous()
        own = {}
        if ctx.shards is not None:
            values["sums"], own = ctx.shards.gradient_sums(recipe.norm, values, recipe.attributes)
        results = _ops.call(recipe.op, [values.get(name) for name in recipe.inputs],
                            recipe.texts[ctx.has_bias])
        found = {**dict(zip(recipe.facts.gradients, results)), **own}
        _move(recipe, ctx.moved, found)
        return (None, None, None, *[found.get(name) if name and needed else None for name, needed
                                    in zip(recipe.gradients, ctx.needs_input_grad[3:])])


class _EagerNorm(torch.autograd.Function):
    """The same in fewer steps, where nothing traces or transforms. PyTorch tracks only y: all
    outputs are appended to `found`."""

    @staticmethod
    def forward(ctx, recipe, found, shards, *tensors):
        given = tensors
        for place in recipe.moved_places:
            given = (*given[:place], _widened(given[place]), *given[place + 1:])
        outputs = _ops.call(recipe.norm, given, recipe.text)
        found.append(outputs)
        known = (*tensors, *outputs, None)
        saved = recipe.saved_or_none(known)
        if not all(map(_has_elements, saved)):
            saved = [None if recipe.facts.lacks(value) else value for value in saved]
        ctx.save_for_backward(*saved)
        ctx.recipe, ctx.shards = recipe, shards
        ctx.moved = [tensors[place] for place in recipe.moved_places]
        ctx.has_bias = recipe.bias is not None and tensors[recipe.bias] is not None
        return outputs[0]

    @staticmethod
    def backward(ctx, dy):
        # Gradients are recorded where a second derivative may follow.
        if not is_grad_enabled():
            return _gradients(ctx, dy)
        with torch.no_grad():
            gradients = _gradients(ctx, dy)
        return _once(ctx.recipe.norm, ctx, dy, gradients)


def _has_elements(value):
    return value is None or value.numel() > 0


def _gradients(ctx, dy):
    recipe, values = ctx.recipe, list(ctx.saved_tensors)
    values[recipe.dy] = dy
    for place, state in zip(recipe.moved_inputs, ctx.moved):
        values[place] = _widened(state)
    own = None
    if ctx.shards is not None:
        named = dict(zip(recipe.inputs, values))
        named["dy"] = dy.contiguous()
        values[recipe.inputs.index("sums")], own = ctx.shards.gradient_sums(
            recipe.norm, named, recipe.attributes)
    results = _ops.call(recipe.op, values, recipe.texts[ctx.has_bias])
    if recipe.moved:
        _move(recipe, ctx.moved, dict(zip(recipe.facts.gradients, results)))
    if own is not None:
        results = [own.get(name, value) for name, value in zip(recipe.facts.gradients, results)]
    return (None, None, None, *[None if place is None or not needed else results[place]
                                for place, needed in zip(recipe.places,
                                                         ctx.needs_input_grad[3:])])


class _TransformedNorm(torch.autograd.Function):
    """The same for torch.func, in the style that it asks for; a call takes three times as long."""

    @staticmethod
    def forward(norm, text, shards, *tensors):
        return _ops.call(norm, [_widened(tensor) for tensor in tensors], text)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _keep(ctx, inputs[:3], inputs[3:], output)

    @staticmethod
    def backward(ctx, dy, *unused):
        gradients = _Norm.backward(ctx, dy)
        return gradients if dy is None else _once(ctx.recipe.norm, ctx, dy, gradients)


def _move(recipe, states, found):
    """Writes the states that the backward moves, unless a number is not finite."""
    for name, state in zip(recipe.moved, states):
        following = found[recipe.facts.states[name].next]
        if following.shape == state.shape:
            commit([state], [following])


def commit(states, following):
    """Writes the following values into the states: all of them, or none where a number is not
    finite in the type of its state. Nobody waits for the numbers."""
    if not _is_traced():
        return _ops.commit(states, following)
    return _ops.commit_unseen(states, following)


def _is_traced():
    """Whether calls are recorded or transformed, so that only PyTorch's own ops may write."""
    return is_compiling() or _are_transforms_active()


def is_transformed():
    """Whether torch.func transforms the call, as torch.autograd.Function asks."""
    return not is_compiling() and _are_transforms_active()


_kept_text = functools.lru_cache(maxsize=1024)(_library.attributes_text)


def text_of(attributes):
    """Attributes as the library reads them."""
    if is_compiling():
        # Under dynamic shapes torch.compile takes a module's floats as symbols, of which str knows
        # nothing; this form makes constants of them, with a guard.
        return _library.attributes_text({
            name: f"{value!r}" if isinstance(value, float) else value
            for name, value in attributes.items()})
    return _kept_text(tuple(attributes.items()))


def apply(norm, values, attributes, shards=None):
    """All outputs of a norm by name, of which y can be differentiated by x, gain and bias, and w of
    weight_norm by v and g. `values` are its inputs by name; a missing one is absent. float16 and
    bfloat16 are computed in float32; y then has the type of x. `shards` are those of a batch on
    several processes."""
    names, result = _ops.OPS[norm].inputs, ALL[norm].outputs[0]
    dtype = values[names[0]].dtype
    # The backward writes what it moves into the tensor itself, not into a wide copy of it.
    as_is = set(_MOVED)
    if reads_bfloat16(norm, dtype) and shards is None and not _is_traced():
        as_is.add(names[0])
    wide = {name: value if value is None or value.dtype not in NARROW or name in as_is
            else value.float() for name, value in values.items()}
    if shards is not None:
        wide.update(shards.statistics(norm, wide, attributes))
    tensors = [wide.get(name) for name in names]
    for given in tensors:
        if given is not None and given.is_meta is not tensors[0].is_meta:
            raise _ops.unlike(norm, tensors[0], given)
    if _is_traced():
        function = _TransformedNorm if is_transformed() else _Norm
        results = function.apply(norm, text_of(attributes), shards, *tensors)
    else:
        results = _eager(_kept_recipe(norm, text_of(attributes)), shards, tensors)
    outputs = dict(zip(ALL[norm].outputs, results))
    if outputs[result].dtype != dtype:
        outputs[result] = outputs[result].to(dtype)
    return outputs


def _eager(recipe, shards, tensors):
    if not is_grad_enabled():
        return _ops.call(recipe.norm, [
            _widened(tensor) if place in recipe.moved_places else tensor
            for place, tensor in enumerate(tensors)], recipe.text)
    found = []
    y = _EagerNorm.apply(recipe, found, shards, *tensors)
    return (y, *found[0][1:])


class _RowRecipe:
    """A norm of rows, or of weights, with inputs of certain types: its ops, their attributes, and
    what the backward reads before dy."""

    def __init__(self, norm, attributes, *dtypes):
        self.norm, self.attributes = norm, attributes
        self.is_narrow = any(dtype in NARROW for dtype in dtypes)
        self.is_native = not self.is_narrow or (
            reads_bfloat16(norm, dtypes[0])
            and all(dtype in (None, torch.float32) for dtype in dtypes[1:]))
        recipe = _kept_recipe(norm, _library.attributes_text(attributes))
        self.text, self.op = recipe.text, recipe.op
        self.backward_text = recipe.texts[len(dtypes) > 2 and dtypes[2] is not None]
        self.forward, self.backward = _bare(self.norm), _bare(self.op)
        self.saved = operator.itemgetter(*recipe.saved[:-1])  # dy is the last input
        self.function = _row_function(self)


def _bare(op):
    """An op without the Python function around it, where PyTorch has it so."""
    return getattr(_ops.OVERLOADS[op], "_op", _ops.OVERLOADS[op])


_row_recipe = functools.lru_cache(maxsize=1024)(_RowRecipe)
# 2, 2.0 and True, 1 are one key, and their texts differ: what was refused must not serve the other.
_ops.caches_of_texts += (_kept_text, _row_recipe)


def _row_function(recipe):
    """_EagerNorm for a norm of rows, which has neither states nor shards. The function is made for
    its recipe: PyTorch then hands nothing but tensors around."""
    forward, text, saved = recipe.forward, recipe.text, recipe.saved
    run_backward, backward_text = recipe.backward, recipe.backward_text
    is_single = len(ALL[recipe.norm].outputs) == 1

    class _RowNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            try:
                outputs = forward(*tensors, text)
            except (ValueError, RuntimeError) as error:
                raise _ops.refusal(recipe.norm, tensors, text, error) from None
            if is_single:
                outputs = (outputs,)
            ctx.save_for_backward(*saved(tensors + outputs))
            return outputs[0]

        @staticmethod
        def backward(ctx, dy):
            if is_grad_enabled():  # a second derivative may follow
                with torch.no_grad():
                    results = _wanted(ctx, run_backward(*ctx.saved_tensors, dy, backward_text))
                return _once(recipe.norm, ctx, dy, results)
            return _wanted(ctx, run_backward(*ctx.saved_tensors, dy, backward_text))

    return _RowNorm


def _wanted(ctx, results):
    """The gradients that are needed, by place."""
    if all(ctx.needs_input_grad):
        return results
    results = results if isinstance(results, tuple) else (results,)
    return tuple([value if wanted else None
                  for value, wanted in zip(results, ctx.needs_input_grad)])


def row(norm, attributes, x, *affine):
    """y of a norm of rows: apply() in fewer steps. `attributes` are pairs, `affine` gain, bias and
    further parameters as far as the norm has them."""
    if is_compiling() or _are_transforms_active():
        return _any_row(norm, attributes, x, *affine)
    try:
        for given in affine:
            if given is not None and given.is_meta is not x.is_meta:
                raise _ops.unlike(norm, x, given)
        recipe = _row_recipe(norm, attributes, x.dtype,
                             *[None if given is None else given.dtype for given in affine])
    except AttributeError as error:
        raise _ops.no_tensor(norm, (x, *affine)) or error from None
    return run_row(recipe, x, *affine)


def run_row(recipe, *tensors):
    """row() where nothing traces or transforms."""
    if not recipe.is_native:
        x, *affine = tensors
        if not reads_bfloat16(recipe.norm, x.dtype):
            return _any_row(recipe.norm, recipe.attributes, *tensors)
        affine = [None if given is None else given.float() for given in affine]
        return row(recipe.norm, recipe.attributes, x, *affine)
    if is_grad_enabled():
        return recipe.function.apply(*tensors)
    return _ops.call(recipe.norm, tensors, recipe.text)[0]


def _any_row(norm, attributes, *tensors):
    outputs = apply(norm, dict(zip(_ops.OPS[norm].inputs, tensors)), dict(attributes))
    return outputs[ALL[norm].outputs[0]]


NARROW = (torch.float16, torch.bfloat16)
# All states that a backward moves.
_MOVED = frozenset(name for facts in NORMS.values() for name, state in facts.states.items()
                   if state.by_backward)


def reads_bfloat16(norm, dtype):
    """Whether keel reads x of that type, and dy, and writes y and dx, without a wide copy.
    Parameters, states and statistics are float32."""
    return dtype is torch.bfloat16 and norm != "weight_norm"


def _widened(value):
    return value.float() if value is not None and value.dtype in NARROW else value

"""A residual sum and the norm of it in one call, differentiable in both results."""
import torch
from torch import is_grad_enabled
from torch.compiler import is_compiling

from . import _autograd, _ops


class _Sum(torch.autograd.Function):
    """All outputs of a sum, of which y and the sum, the first and the last, have gradients."""

    @staticmethod
    def forward(ctx, norm, text, *tensors):
        outputs = _ops.call(norm, tensors, text)
        recipe = ctx.recipe = _autograd.recipe_of(norm, text)
        known = (*tensors, *outputs)
        ctx.mark_non_differentiable(*outputs[1:-1])
        ctx.set_materialize_grads(False)
        # The last inputs of the backward are the gradients.
        ctx.save_for_backward(*[known[place] for place in recipe.saved[:-2]])
        ctx.has_bias = tensors[-1] is not None
        return outputs

    @staticmethod
    def backward(ctx, dy, *rest):
        dsum, norm = rest[-1], ctx.recipe.norm
        if dy is None:  # nothing depends on y
            return None, None, dsum, dsum, None, None
        if is_compiling() or not is_grad_enabled():
            return _wanted(ctx, _gradients(ctx, dy, dsum))
        with torch.no_grad():
            gradients = _gradients(ctx, dy, dsum)
        sources = [value for value in (dy, dsum, *ctx.saved_tensors) if value is not None]
        return _wanted(ctx, _autograd.once(norm, gradients, sources))


def _gradients(ctx, dy, dsum):
    """dx, which is that of the residual, too, dgain and dbias."""
    return _ops.call(ctx.recipe.op, (*ctx.saved_tensors, dy, dsum), ctx.recipe.texts[ctx.has_bias])


def _wanted(ctx, gradients):
    dx, dgain, dbias = gradients
    return None, None, *[value if wanted else None for value, wanted in
                         zip((dx, dx, dgain, dbias), ctx.needs_input_grad[2:])]


def apply(norm, attributes, x, residual, *affine):
    """y and the sum of two tensors of one type and shape. `attributes` are pairs, `affine` gain and
    bias. Where keel has no kernel for both, PyTorch adds and keel's norm takes the sum."""
    tensors = x, residual, *affine
    try:
        if _is_composed(tensors):
            total = x + residual
            return _autograd.row(norm.removeprefix("add_"), attributes, total, *affine), total
        for given in tensors:
            if given is not None and given.is_meta is not x.is_meta:
                raise _ops.unlike(norm, x, given)
    except AttributeError as error:
        raise _ops.no_tensor(norm, tensors) or error from None
    text = _autograd.text_of(dict(attributes))
    is_tracked = is_compiling() or is_grad_enabled()
    outputs = _Sum.apply(norm, text, *tensors) if is_tracked else _ops.call(norm, tensors, text)
    return outputs[0], outputs[-1]


def _is_composed(tensors):
    """Whether a tensor lies on a GPU or is narrow, or torch.func transforms the call."""
    for given in tensors:
        if given is not None and (given.is_cuda or given.dtype in _autograd.NARROW):
            return True
    return _autograd.is_transformed()

"""Replaces the norms of a model."""
from torch import nn

from .column_modules import _ColumnNorm
from .row_modules import AdaNorm, DetachNorm


def convert(model, mapping):
    """Replaces every module whose class is a key of `mapping`, in place, and returns the model.

    A value is a class of this package, or a function that takes the old module and returns the new
    one. Parameters of the same name and shape, and buffers, are kept as the same objects, so that
    an optimizer made before stays valid."""
    made = {}  # a norm that stands in several places stays one norm

    def converted(old):
        if type(old) not in mapping:
            return old
        if old not in made:
            made[old] = replacement(old, mapping[type(old)])
        return made[old]

    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if child is not None:
                setattr(module, name, converted(child))
    return converted(model)


def replacement(old, target):
    new = made_like(old, target) if isinstance(target, type) else target(old)
    new.train(old.training)
    for name, parameter in old.named_parameters(recurse=False):
        if getattr(new, name, None) is not None and getattr(new, name).shape == parameter.shape:
            setattr(new, name, parameter)
    for name, buffer in old.named_buffers(recurse=False):
        if name in new._buffers and new._buffers[name].shape == buffer.shape:
            new._buffers[name] = buffer
    return new


def made_like(old, target):
    """A module of the class `target` with the sizes and options of `old`."""
    shape = getattr(old, "normalized_shape", None)
    if target in (AdaNorm, DetachNorm):
        return target(eps=old.eps)
    if issubclass(target, _ColumnNorm):
        width = shape[-1] if shape else old.num_features
        return target(width, affine=old.weight is not None)
    if issubclass(target, nn.LayerNorm):
        return target(shape, old.eps, old.elementwise_affine, old.bias is not None)
    if issubclass(target, nn.RMSNorm):
        return target(shape, old.eps, old.elementwise_affine)
    if issubclass(target, nn.GroupNorm):
        return target(old.num_groups, old.num_channels, old.eps, old.affine)
    if issubclass(target, (nn.BatchNorm1d, nn.BatchNorm2d, nn.InstanceNorm1d, nn.InstanceNorm2d)):
        return target(old.num_features, old.eps, old.momentum, old.affine, old.track_running_stats)
    if target.__name__ == "LayerNormSimple":
        return target(shape, old.eps)
    raise TypeError(f"convert: expected a class of keel_norms.torch that can be made from "
                    f"{type(old).__name__}, or a function, got {target.__name__}")

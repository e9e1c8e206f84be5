"""Replaces the norms of a model."""
from torch import nn

from .column_modules import _ColumnNorm
from .row_modules import _Row
from .weight_modules import WeightNorm


def convert(model, mapping):
    """Replaces every module whose class is a key of `mapping`, in place, and returns the model.

    A value is a class of this package, or a function that takes the old module and returns the new
    one, which moves to the device and type of the old one. Parameters of the same name and shape
    are kept as the same objects, so that an optimizer made before stays valid. A module of a class
    has no bias where the old one has none. Buffers are kept where all of the new module's are found
    in the old one, with the same shapes and types; otherwise the new module's start from their
    initial values."""
    if not isinstance(mapping, dict):
        raise TypeError("convert: mapping: expected a dictionary of classes and what replaces them,"
                        f" got {mapping!r}")
    for kind, target in mapping.items():
        if isinstance(target, nn.Module) or not callable(target):
            raise TypeError(f"convert: {kind.__name__}: expected a class of keel_norms.torch or a "
                            f"function, got {target!r}")
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
    is_class = isinstance(target, type)
    new = without_bias_of(old, made_like(old, target)) if is_class else target(old)
    new.train(old.training)
    place = next((t for t in (*old.parameters(), *old.buffers()) if t.is_floating_point()), None)
    if place is not None:
        new.to(place.device, place.dtype)
    for name, parameter in old.named_parameters(recurse=False):
        if getattr(new, name, None) is not None and getattr(new, name).shape == parameter.shape:
            setattr(new, name, parameter)
    share_buffers(old, new)
    return new


def without_bias_of(old, new):
    """The new module, without a bias where the old one has none."""
    if "bias" in new._parameters and getattr(old, "bias", None) is None:
        new.bias = None
    return new


def share_buffers(old, new):
    """Gives the new module the old one's buffers, all or none: a running mean without the deviation
    that belongs to it would be worse than a fresh start."""
    def same(name, buffer):
        own = old._buffers.get(name)
        return own is not None and (own.shape, own.dtype) == (buffer.shape, buffer.dtype)

    if all(buffer is not None and same(name, buffer) for name, buffer in new._buffers.items()):
        new._buffers.update({name: old._buffers[name] for name in new._buffers})


_TRACKING = nn.BatchNorm1d, nn.BatchNorm2d, nn.InstanceNorm1d, nn.InstanceNorm2d


def made_like(old, target):
    """A module of the class `target` with the sizes and options of `old`."""
    shape = shape_of(old)
    eps = getattr(old, "added", getattr(old, "eps", None))
    eps = {} if eps is None else {"eps": eps}  # RMSNorm's None is that of its type
    if target is WeightNorm:
        return target(old.dim)
    if shape and issubclass(target, _Row):
        return target(shape, **eps)
    if shape and issubclass(target, _ColumnNorm):
        return target(shape[-1], affine=getattr(old, "weight", None) is not None)
    if hasattr(old, "elementwise_affine") and issubclass(target, (nn.LayerNorm, nn.RMSNorm)):
        return target(shape, elementwise_affine=old.elementwise_affine, **eps)
    if hasattr(old, "num_groups") and issubclass(target, nn.GroupNorm):
        return target(old.num_groups, old.num_channels, old.eps, old.affine)
    if hasattr(old, "track_running_stats") and issubclass(target, _TRACKING):
        return target(old.num_features, old.eps, old.momentum, old.affine, old.track_running_stats)
    raise TypeError(f"convert: expected a class of keel_norms.torch that can be made from "
                    f"{type(old).__name__}, or a function, got {target.__name__}")


def shape_of(old):
    """The sizes over which a module has parameters, where it tells them."""
    if shape := getattr(old, "normalized_shape", None):
        return shape
    channels = getattr(old, "num_features", getattr(old, "num_channels", None))
    return channels and (channels,)

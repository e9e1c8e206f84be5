"""Ops that move, choose or compare: their results have no rounding, but that of a change of type
or of a Python number."""
import torch
from torch.utils import _pytree as pytree

from keel_judge.measure import Expected
from keel_judge.rounding import EPS

COPIES = """
    clone copy _to_copy contiguous cat stack hstack constant_pad_nd reflection_pad1d
    reflection_pad2d replication_pad1d replication_pad2d roll flip repeat tril triu _reshape_copy
    index_select gather index take masked_select select_backward slice_backward diagonal_backward
    select_scatter slice_scatter embedding where masked_fill fill zero zeros ones full zeros_like
    ones_like full_like new_zeros new_ones new_full scalar_tensor eye one_hot pixel_shuffle
    pixel_unshuffle channel_shuffle upsample_nearest1d upsample_nearest2d upsample_nearest3d
    im2col split_copy view_copy expand_copy permute_copy unbind_copy diag_embed rot90
    _pack_padded_sequence tril_indices triu_indices index_fill scatter masked_scatter unfold_copy
    """.split()
CHOICES = """
    relu relu6 hardtanh clamp clamp_min clamp_max maximum minimum fmax fmin neg abs sign sgn
    floor ceil round trunc max_pool2d amax amin threshold threshold_backward hardtanh_backward
    eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isinf isfinite
    bitwise_and bitwise_or bitwise_not bitwise_xor any all count_nonzero nonzero bucketize
    searchsorted signbit heaviside nan_to_num logical_or equal isin histc bincount
    """.split()


def numbers_of(call):
    """Whether a Python number among the arguments is none of float32's."""
    leaves = pytree.tree_leaves(call.given)
    return any(isinstance(v, float) and v == v and abs(v) != float("inf")
               and float(torch.tensor(v, dtype=torch.float32)) != v for v in leaves)


def with_rounded_numbers(call):
    """The call's arguments, Python's numbers in the type of its first floating tensor."""
    dtype = next((t.dtype for t in call.floats()), torch.float32)
    return {name: pytree.tree_map_only(float, lambda v: float(torch.tensor(v, dtype=dtype)), value)
            for name, value in call.wide.items()}


def exact(call):
    """The same values; EPS where a number of the program was rounded first. A comparison with such
    a number is right either way where its rounding decides."""
    results = call.run()
    if not numbers_of(call):
        return [Expected(v, 0.0, is_exact=True) for v in results]
    others = call.run_on(with_rounded_numbers(call))
    return [Expected(v, EPS * v.abs()) if v.is_floating_point() else Expected(v, right=v != other)
            for v, other in zip(results, others)]


def ties(values, expected, chosen, dim):
    """Choices by index are right where they name an element of the same value."""
    source = values if dim is None else values.movedim(dim, -1)
    if dim is None:
        return source.flatten()[chosen] == source.flatten()[expected]
    named = chosen if chosen.dim() == source.dim() else chosen.unsqueeze(-1)
    wanted = expected if expected.dim() == source.dim() else expected.unsqueeze(-1)
    same = source.gather(-1, named.movedim(dim, -1) if chosen.dim() == source.dim() else named) \
        == source.gather(-1, wanted.movedim(dim, -1) if expected.dim() == source.dim() else wanted)
    return same.reshape(chosen.shape) if named is not chosen else same.movedim(-1, dim)


def chosen_along(call):
    """max, min, sort, topk, argmax with a dimension: values exactly, indices up to ties."""
    values = call.run()
    dim = call["dim"] if call.has("dim") else (-1 if call.name in ("topk", "sort") else None)
    results = []
    for result, value in zip(call.results, values):
        if value.is_floating_point() or call.name in ("max", "min") and len(values) == 1:
            results.append(Expected(value, 0.0, is_exact=True))
            continue
        got = result.got.cpu()
        inside = (got >= 0) & (got < max(1, call["self"].numel()))
        right = ties(call["self"], value, got, dim) if bool(inside.all()) else None
        results.append(Expected(value, right=right))
    return results


RULES = dict.fromkeys([*COPIES, *CHOICES], exact) | dict.fromkeys(
    ["max", "min", "sort", "topk", "argmax", "argmin", "argsort", "kthvalue", "mode"],
    chosen_along)

"""Ops that add up what lies at the same index: T of the terms of that very row."""
import torch

from keel_judge.call import Refused
from keel_judge.measure import Expected
from keel_judge.rounding import EPS
from keel_judge.rules.exact import exact
from keel_judge.rules.sums import of_arguments, summed, sums_of


def own_eps(call):
    """Kernels add up in the type of the result, which may have 16 bits."""
    return max(EPS, call.narrow_eps())


def counted(call, names, counts, more=1):
    """Sums whose numbers of terms are found by the op itself, run on ones."""
    value = call.run()[0]
    if not value.is_floating_point():
        return exact(call)
    sizes, squares = of_arguments(call, names, torch.abs)[0], of_arguments(
        call, names, torch.square)[0]
    return [summed(value, (counts + more, sizes, squares), {"eps": own_eps(call)})]


def ones_in(call, names, zero=()):
    wide = dict(call.wide)
    for name in names:
        wide[name] = torch.ones_like(wide[name])
    for name in zero:
        wide[name] = torch.zeros_like(wide[name])
    return call.run_on(wide)[0]


def embedding_backward(call):
    """A row is the sum of the gradients of its occurrences."""
    return counted(call, ["grad_output"], ones_in(call, ["grad_output"]), 0)


def adding(source):
    """index_add, scatter_add: the former value and what is added."""
    def rule(call):
        if not call.floats():
            return exact(call)
        return counted(call, ["self", source], ones_in(call, [source], ["self"]))
    return rule


def index_put(call):
    """With accumulate sums, else a copy."""
    if not call["accumulate"] or not call.floats():
        return exact(call)
    return counted(call, ["self", "values"], ones_in(call, ["values"], ["self"]))


def scatter_reduce(call):
    reduce = call["reduce"]
    if reduce in ("amax", "amin") or not call.floats():
        return exact(call)
    source = "src" if call.has("src") else "source"
    if reduce not in ("sum", "mean"):
        count = call[source].shape[call["dim"]] + 1
        return [Expected(v, 2 * count * EPS * v.abs()) for v in call.run()]
    counts = ones_in(call, [source], ["self"]) if reduce == "sum" \
        else call[source].shape[call["dim"]]
    results = counted(call, ["self", source], counts)
    for r in results:
        r.error = r.error + 5 * EPS * r.value.abs()
    return results


def bag(call):
    """The sum, the mean or the largest of each bag's rows; the other results are exact."""
    values = call.run()
    if call["mode"] == 2:
        return [Expected(values[0], 0.0, is_exact=True)] + [None] * (len(call.results) - 1)
    indices, offsets = call["indices"], call["offsets"]
    longest = indices.numel()
    if offsets.numel():
        ends = torch.cat([offsets, torch.tensor([indices.numel()])])
        longest = int((ends[1:] - ends[:-1]).max())
    names = ["weight"] + (["per_sample_weights"] if call.has("per_sample_weights") else [])
    total = sums_of(call, names, longest + 5)[0]
    return [total] + [None] * (len(call.results) - 1)


def bag_backward(call):
    """A row's occurrences in all bags."""
    grad = "grad"
    counts = torch.bincount(call["indices"], minlength=call["num_weights"]).double()
    value = call.run()[0]
    sizes, squares = of_arguments(call, [grad], torch.abs)[0], of_arguments(
        call, [grad], torch.square)[0]
    if call["mode"] == 1:
        squares = torch.minimum(squares, sizes.square())
    return [summed(value, (counts.unsqueeze(1) + 4, sizes, squares), {"eps": own_eps(call)})]


def any_bag_backward(call):
    """The backward of a table whose gradient is dense."""
    if call["sparse"]:
        raise Refused("a sparse gradient")
    return bag_backward(call)


def overlapping(call):
    """unfold and the like: an element is a sum over the windows that hold it."""
    name = "grad_in" if call.has("grad_in") else "self"
    x = call[name]
    return sums_of(call, [name], max(1, x.numel() / max(1, call.results[0].got.numel())) + 1)


RULES = {
    "embedding_dense_backward": embedding_backward, "index_add": adding("source"),
    "scatter_add": adding("src"), "index_put": index_put,
    "_unsafe_masked_index_put_accumulate": adding("values"), "_unsafe_index_put": index_put,
    "_index_put_impl": index_put, "scatter_reduce": scatter_reduce, "_embedding_bag": bag,
    "_embedding_bag_forward_only": bag, "_embedding_bag_dense_backward": bag_backward,
    "_embedding_bag_backward": any_bag_backward,
    "unfold_backward": overlapping, "col2im": overlapping,
    "reflection_pad2d_backward": overlapping, "replication_pad2d_backward": overlapping,
}

"""Products of matrices: an element is a sum of K products, and a bias."""
import torch

from keel_judge.rounding import EPS
from keel_judge.rules.sums import of_arguments, sums_of

TF32 = 2.0**-11  # a factor rounded to 10 bits


def may_round_factors(call):
    tensors = [r.got for r in call.results]
    return any(t.is_cuda for t in tensors) and torch.backends.cuda.matmul.allow_tf32


def product(factors, addend=(), inner=-1):
    """`inner`: the axis of the first factor that is summed over. beta and alpha are each rounded
    once and multiply once."""
    def rule(call):
        first = call[factors[0]]
        count = first.shape[inner] + (1 if addend else 0)
        scales = [name for name in ("beta", "alpha") if call.has(name)]
        is_scaled = any(call[name] != 1 for name in scales)
        names = [*factors, *(n for n in addend if call.has(n)), *scales]
        results = sums_of(call, names, count, extra=2 if is_scaled else 0)
        for result in results:
            add_classes(call, names, count, result)
        return results
    return rule


def add_classes(call, names, count, result):
    """Kernels of GPUs that cut what they add up, or round factors to 10 bits."""
    narrow = call.narrow_eps() > 0
    is_cuda = any(r.got.is_cuda for r in call.results)
    if not (is_cuda and (narrow or may_round_factors(call))):
        return
    sizes = of_arguments(call, names, torch.abs)[0]
    length = of_arguments(call, names, torch.square)[0].sqrt()
    trend = torch.maximum(result.value.abs(), 4 * length)
    cut = 2 * EPS * (count / 8 + 8) * trend + 16 * EPS * count**0.5 * length
    result.wider["tensor cores"] = result.error + cut
    if may_round_factors(call):
        result.wider["TF32"] = result.error + cut + (2 * TF32 + TF32**2) * sizes


RULES = {
    "mm": product(("self", "mat2")),
    "bmm": product(("self", "mat2")),
    "addmm": product(("mat1", "mat2"), ("self",)),
    "baddbmm": product(("batch1", "batch2"), ("self",)),
    "mv": product(("self", "vec")),
    "addmv": product(("mat", "vec"), ("self",)),
    "dot": product(("self", "tensor")),
    "vdot": product(("self", "other")),
    "linear": product(("input", "weight"), ("bias",)),
    "mkldnn_linear": product(("self", "weight"), ("bias",)),
}

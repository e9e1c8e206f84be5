"""Ops that draw random numbers: what they drew is taken as given, and its form is checked."""
import torch

from keel_judge.measure import Expected
from keel_judge.rounding import EPS, TINY


def inside(low, high, whole=False):
    """Every element lies in [low, high]; one that does not is held to the nearest end."""
    def rule(call):
        results = []
        for result in call.results:
            got = result.got.detach().cpu().double()
            first, last = low(call), high(call)
            value = got.nan_to_num(first).clamp(first, last)
            value = value.round() if whole else value
            results.append(Expected(value.to(result.got.dtype) if not
                                    result.got.is_floating_point() else value, TINY))
        return results
    return rule


def dropout(call):
    """y = x mask / (1 - p), with the mask that was drawn."""
    p = call["p"]
    if not call["train"]:
        return [Expected(call["input"], is_exact=True), None]
    mask = call.results[1].got.cpu().double()
    y = call["input"] * mask / (1 - p) if p < 1 else torch.zeros_like(call["input"])
    return [Expected(y, 3 * EPS * y.abs() + TINY), None]


def unknown(call):
    """Whole numbers that were drawn: nothing is said of them."""
    return [None] * len(call.results)


def finite(call):
    return [Expected(torch.nan_to_num(r.got.cpu().double(), 0, 0, 0), 0.0) for r in call.results]


zero_to_one = inside(lambda c: 0.0, lambda c: 1.0)
bit = inside(lambda c: 0.0, lambda c: 1.0, whole=True)
RULES = {
    "native_dropout": dropout, "bernoulli": bit, "rand": zero_to_one, "rand_like": zero_to_one,
    "uniform": inside(lambda c: float(c["from"]), lambda c: float(c["to"])),
    "randn": finite, "randn_like": finite, "normal": finite, "exponential": finite,
    "log_normal": finite,
} | dict.fromkeys(["random", "randperm", "randint", "multinomial"], unknown)

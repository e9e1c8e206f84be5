"""Compares the formula that `identify` finds with the claim."""
import math

import torch

from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import FAIL, LIMIT, PASS, Outcome
from keel_judge.acid_test.properties.base import Property
from keel_judge.acid_test.samples import Case, arrays_of, shapes_of
from keel_judge.formulas import SAME, numbers_like
from keel_judge.norms import identify
from keel_judge.norms.answer import named, variant

MOST = 6_000  # elements: `identify` tries a thousand forms


def probe_case(trial):
    """A shape that tells most: several rows, widths that have divisors, not too large."""
    shapes = [s for s in shapes_of(trial) if math.prod(s) <= MOST and math.prod(s[1:]) > 4]
    shape = max(shapes or shapes_of(trial), key=lambda s: min(s[0], 8) * min(s[-1], 64))
    if not trial.binding.shape and trial.claim.of_rows:
        shape = (24, trial.binding.width or 48)
    return Case(shape, "normal")


def probe(trial, case, number):
    """Arrays whose deviations lie on both sides of every usual eps."""
    arrays = arrays_of(case, trial, "formula", number)
    arrays.x = numbers_like(case.shape, torch.float64).to(trial.dtype)
    return arrays


def answer_for(trial, arrays, got):
    given = {"x": arrays.x, "y": got["y"]}
    given |= {n: getattr(arrays, n) for n in ("gain", "bias") if getattr(arrays, n) is not None}
    if "dx" in got:
        given |= {"dy": arrays.dy, "dx": got["dx"]}
        given |= {"dgain": got["dgain"]} if "dgain" in got else {}
    flat = ("x", "y", "dy", "dx")
    if trial.claim.of_rows:
        width = arrays.x.shape[-1]
        given = {k: v.reshape(-1, width) if k in flat else v for k, v in given.items()}
    elif arrays.x.dim() > 2:
        given = {k: v.reshape(*arrays.x.shape[:2], -1) if k in flat else v
                 for k, v in given.items()}
    return identify(**given)


def eps_found(trial):
    """The eps that the numbers show, or None: for a norm that does not say it."""
    case = probe_case(trial)
    arrays = probe(trial, case, 0)
    answer = answer_for(trial, arrays, trial.call(arrays, False))
    return answer.best.options.get("eps") if answer.is_known else None


class Formula(Property):
    name, title = "formula", "computes the formula that it claims"

    def cases(self, trial):
        return [probe_case(trial)]

    def run(self, trial, case, number):
        arrays = probe(trial, case, number)
        got = trial.call(arrays)
        answer = answer_for(trial, arrays, got)
        found = [Outcome(PASS, trial.claim.text())]
        if not answer.is_known:
            far = [o for o in trial.compare({"y": got["y"]}, arrays) if o.level != PASS]
            return far or found
        found += [Outcome(FAIL, f"claims {trial.claim.text()}: {words}")
                  for words in self.differences(trial, answer)]
        if "dx" in got and not any(variant(c) == "exact" for c in answer.matches):
            how = answer.gradient()
            near = min(answer.best.gradients, key=answer.best.gradients.get)
            found.append(Outcome(FAIL, f"backward computes another formula: {how or near}")
                         if how else Outcome(LIMIT, "dx is of no known form"))
        return found + cast_of(trial, arrays, got)

    def differences(self, trial, answer):
        claim = trial.claim
        same = SAME.get(claim.norm, {claim.norm})
        if not same & set(answer.names) and not same & {c.norm for c in answer.matches}:
            yield f"computes {answer.best.text()}"
            return
        fitting = [c for c in answer.matches if named(c) in same or c.norm in same]
        for key, wanted, default in (("eps", claim.used_eps, 0.0),
                                     ("eps_place", claim.eps_place, "inside"),
                                     ("unbiased", claim.unbiased, False),
                                     ("offset", claim.offset if trial.has_gain else 0, 0)):
            values = {c.options.get(key, default) for c in fitting}
            is_met = any(math.isclose(v, wanted, rel_tol=1e-3) if key == "eps" else v == wanted
                         for v in values)
            if not is_met:
                yield f"{key} is {fitting[0].options.get(key, default)}, claimed is {wanted}"


def cast_of(trial, arrays, got):
    """Where a 16-bit kernel rounds xhat: told by counting equal results."""
    if trial.dtype.itemsize != 2 or not trial.has_gain or got["y"].dtype != trial.dtype:
        return []
    reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
    groups, stats = reference.groups, reference.stats
    xhat = (groups.x - stats.mean) * stats.rstd
    bits, y = trial.dtype, got["y"]
    at_end = reference.back(xhat * groups.gain + groups.bias).to(bits)
    rounded = xhat.to(bits).double() * groups.gain
    before = reference.back(rounded + groups.bias).to(bits)
    ends, befores = (float((y == form).double().mean()) for form in (at_end, before))
    order = "end" if ends >= befores else "before gain"
    if trial.claim.cast not in (None, order):
        return [Outcome(FAIL, f"x̂ is rounded {WHERE[order]}, claimed is "
                        f"{WHERE[trial.claim.cast]}")]
    return [Outcome(PASS, f"{trial.claim.text()}, x̂ rounded {WHERE[order]}")]


WHERE = {"end": "after gain and bias", "before gain": "before the gain"}
PROPERTIES = (Formula,)

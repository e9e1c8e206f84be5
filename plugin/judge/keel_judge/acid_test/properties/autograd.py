"""Faults of recorded gradients: subsets, writes, several uses, second order."""
import itertools

import torch

from keel_judge.acid_test.adapters.of_torch import NoGradient
from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import FAIL, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import (Property, failed, refusal, thinned,
                                                  usual_shape)
from keel_judge.acid_test.properties.second import second_order
from keel_judge.acid_test.samples import Case, shapes_of


class OfAutograd(Property):
    needs_torch = True

    def check(self, trial):
        super().check(trial)
        if trial.adapter.backward != "autograd":
            raise Skip("no gradients by autograd")

    def leaves(self, arrays, wanted=("x", "gain", "bias")):
        return {n: t.detach().clone().requires_grad_(n in wanted) for n, t in arrays.items()
                if n != "dy"}

    def invoke(self, trial, leaves):
        trial.calls += 1
        return trial.binding.invoke(leaves["x"], leaves.get("gain"), leaves.get("bias"))


class Subsets(OfAutograd):
    name, title = "frozen inputs", "gradients of any subset of x, gain and bias"

    def cases(self, trial):
        names = [n for n, has in (("x", True), ("gain", trial.has_gain),
                                  ("bias", trial.has_bias)) if has]
        sets = [s for k in range(1, len(names) + 1) for s in itertools.combinations(names, k)]
        return [Case(usual_shape(trial), "normal", how=" ".join(s)) for s in sets]

    def run(self, trial, case, number):
        arrays, wanted = self.arrays(trial, case, number), case.how.split()
        leaves = self.leaves(arrays, wanted)
        y = self.invoke(trial, leaves)
        if not y.requires_grad:
            raise NoGradient(f"y requires no gradient where {case.how} does")
        y.backward(arrays.dy.to(y.dtype))
        missing = [n for n in wanted if leaves[n].grad is None]
        if missing:
            return [failed(f"no gradient of {', '.join(missing)} where only {case.how} "
                           "requires one")]
        surplus = [n for n, t in leaves.items() if n not in wanted and t.grad is not None]
        if surplus:
            return [failed(f"a gradient of {', '.join(surplus)}, which requires none")]
        found = trial.compare({f"d{n}": leaves[n].grad for n in wanted}, arrays)
        return [failed(f"where only {case.how} requires a gradient: {o.words}", o.share)
                if o.level == FAIL else o for o in found]


class Writes(OfAutograd):
    name, title = "in place", "writes between forward and backward are refused or do no harm"

    def cases(self, trial):
        hows = ["x is written", "y is written"] + ["gain is written"] * trial.has_gain
        return [Case(usual_shape(trial), "shifted", how=how) for how in hows]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        leaves = self.leaves(arrays)
        x = leaves["x"] * 1  # no leaf: these must not be written
        gain = leaves["gain"] * 1 if "gain" in leaves else None
        trial.calls += 1
        y = trial.binding.invoke(x, gain, leaves.get("bias"))
        y = y * 1 if case.how != "y is written" else y
        dy = arrays.dy.to(y.dtype)
        try:
            {"x is written": x, "y is written": y, "gain is written": gain}[case.how].mul_(0.5)
            names = list(leaves)
            result = torch.autograd.grad(y, list(leaves.values()), 2 * dy
                                         if case.how == "y is written" else dy)
        except RuntimeError as error:
            if "modified" in str(error) or "in-place" in str(error) or "inplace" in str(error):
                return [Outcome(PASS)]
            raise
        got = {f"d{n}": g for n, g in zip(names, result)}
        return [failed(f"{case.how} between forward and backward: {o.words}", o.share)
                if o.level == FAIL else o for o in trial.compare(got, arrays)]


class Uses(OfAutograd):
    name, title = "two uses", "gradients of two uses of a parameter add up"

    def cases(self, trial):
        return [Case(s, "normal") for s in thinned(trial, shapes_of(trial)[:4], 2)]

    def run(self, trial, case, number):
        first = self.arrays(trial, case, number)
        second = self.arrays(trial, case, number + 1000)
        second.gain, second.bias = first.gain, first.bias
        leaves = self.leaves(first)
        other = second.x.clone().requires_grad_()
        ys = [self.invoke(trial, leaves), self.invoke(trial, leaves | {"x": other})]
        grads = [a.dy.to(y.dtype) for a, y in zip((first, second), ys)]
        torch.autograd.backward(ys, grads)
        got = [{"dx": leaves["x"].grad}, {"dx": other.grad}]
        found = [failed(f"of two calls before one backward, {w} one: {o.words}", o.share)
                 for g, a, w in zip(got, (first, second), ("the first", "the second"))
                 for o in trial.failures(g, a)]
        if not found:
            found = self.sums(trial, (first, second), leaves)
        return found or [Outcome(PASS)]

    def sums(self, trial, both, leaves):
        """dgain and dbias against the sum of those of each call."""
        found = []
        for name in [n for n in ("gain", "bias") if n in leaves]:
            total, allowed = 0, 0
            for arrays in both:
                reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
                expected = reference.backward(arrays.dy, trial.narrow_of(arrays))[f"d{name}"]
                total = total + expected.value
                allowed = allowed + max_of([expected.error, *expected.wider.values()])
            got = leaves[name].grad.double()
            rounding = 4 * torch.finfo(leaves[name].dtype).eps * (total.abs() + got.abs())
            beyond = (got - total).abs() > allowed + rounding
            if bool(beyond.any()):
                found.append(failed(f"d{name} of two uses is not the sum of both"))
        return found


def max_of(bounds):
    return torch.stack([torch.as_tensor(b) for b in bounds]).amax(0)


class DoubleBackward(OfAutograd):
    name, title = "double backward", "a second derivative is refused or right"

    def check(self, trial):
        super().check(trial)
        if trial.dtype != torch.float32 or trial.parameter_dtype != torch.float32:
            raise Skip("for float32")
        if trial.claim.eps_place != "inside" or trial.claim.unbiased:
            raise Skip("for eps inside the root and variances over n")

    def cases(self, trial):
        return [Case(s, "normal") for s in thinned(trial, shapes_of(trial)[:3], 1)]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        v = self.arrays(trial, case, number + 1000).dy
        leaves = self.leaves(arrays)
        dy = arrays.dy.clone().requires_grad_()
        y = self.invoke(trial, leaves)
        inputs = [leaves["x"], dy] + ([leaves["gain"]] if "gain" in leaves else [])
        try:
            dx, = torch.autograd.grad(y, leaves["x"], dy, create_graph=True)
            if not dx.requires_grad:
                return [failed("dx is cut from the graph without an error: a second derivative "
                               "would be missing")]
            # Not `grad`, which does not reach the node that refuses a second derivative.
            torch.autograd.backward(dx, v)
            got = [t.grad for t in inputs]
        except (RuntimeError, NotImplementedError) as error:
            return [refusal(error, "a second derivative")]
        names = ["x", "dy", "gain"]
        wanted = second_order(trial.claim, arrays, v)
        found = []
        for name, g in zip(names, got):
            value, error = wanted[name]
            if g is None:
                found.append(failed(f"the second derivative by {name} is missing"))
                continue
            share = ((g.double() - value).abs() / error).nan_to_num(torch.inf)
            worst = float(share.max())
            found.append(failed(f"the second derivative by {name} is {worst:.3g} bounds off",
                                worst) if worst > 1 else Outcome(PASS, "", worst))
        return found


PROPERTIES = (Subsets, Writes, Uses, DoubleBackward)

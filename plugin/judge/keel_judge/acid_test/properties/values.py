"""y, dx, dgain and dbias within their bounds, on ordinary numbers and on hard ones."""
import torch

from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, failed, thinned, usual_shape
from keel_judge.acid_test.samples import PLAIN, SPECIAL, Case, shapes_of
from keel_judge.acid_test.trial import same_bits
from keel_judge.rounding import EPS


class Values(Property):
    """One of the results, on ordinary numbers of many shapes."""

    what = "y"

    def check(self, trial):
        if self.what != "y" and not trial.adapter.has_gradients:
            raise Skip("no backward: give one with --backward")
        if self.what == "dgain" and not trial.has_gain or \
                self.what == "dbias" and not trial.has_bias:
            raise Skip("the norm has no such parameter")

    def cases(self, trial):
        shapes, gradients = shapes_of(trial), ("normal", "constant", "of few rows")
        cases = [Case(shape, PLAIN[(i + j) % len(PLAIN)], gradient=gradients[(i + j) % 3])
                 for j in range(3) for i, shape in enumerate(shapes)]
        return thinned(trial, cases, 8)

    def run(self, trial, case, number):
        arrays = trial.arrays(case, "values", number)
        got = trial.call(arrays, self.what != "y")
        if self.what not in got:
            return [failed(f"{self.what} is missing")]
        return trial.compare({self.what: got[self.what]}, arrays)


class Forward(Values):
    name, title, what = "forward", "y is right within rounding", "y"


class GradientOfX(Values):
    name, title, what = "dx", "dx is right within rounding", "dx"


class GradientOfGain(Values):
    name, title, what = "dgain", "dgain is right within rounding", "dgain"


class GradientOfBias(Values):
    name, title, what = "dbias", "dbias is right within rounding", "dbias"


class Hard(Property):
    """All results on numbers that are hard in one way."""

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        return [self.placed(o, case) for o in trial.compare(trial.call(arrays), arrays)]

    def placed(self, outcome, case):
        if outcome.words:
            level = f" 2^{case.level}" if case.level else ""
            outcome.words += f", at {case.data}{level}"
        return outcome


class Means(Hard):
    name, title = "means", "right for means of 2^2 to 2^23 deviations"

    def cases(self, trial):
        shapes = shapes_of(trial)
        top = 23 if trial.dtype is torch.float32 else 10
        cases = [Case(shapes[k % len(shapes)], "mean", k) for k in range(2, top + 1)]
        return thinned(trial, cases, 6)


class Range(Hard):
    name, title = "range", "right for every exponent"

    def cases(self, trial):
        shapes = shapes_of(trial)
        low, high = (-24, 15) if trial.dtype is torch.float16 else (-126, 126)
        levels = [k for k in range(low, high + 1, 6 if low < -24 else 3) if k]
        cases = [Case(shapes[i % len(shapes)], "scaled", k) for i, k in enumerate(levels)]
        return thinned(trial, cases, 9)


class Special(Hard):
    name, title = "special rows", "right for constant rows, zeros, subnormal and huge numbers"

    def cases(self, trial):
        shapes = shapes_of(trial)
        cases = [Case(shapes[(2 * i + j) % len(shapes)], data)
                 for i, data in enumerate(SPECIAL) for j in range(3)]
        cases += [Case(shapes[0], "one huge element", 30 if trial.dtype != torch.float16 else 15),
                  Case(shapes[0], "constant rows", 12)]
        return thinned(trial, cases, 8)


class NonFinite(Property):
    name, title = "inf and NaN", "inf and NaN stay in their group, and are not swallowed"

    def cases(self, trial):
        shape = usual_shape(trial)
        return [Case(shape, "normal", how=how) for how in ("nan", "inf", "-inf")]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        clean = trial.call(arrays)
        arrays.x = arrays.x.clone()
        arrays.x[(1,) + (0,) * (arrays.x.dim() - 1)] = float(case.how)
        got = trial.call(arrays)
        reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
        groups = reference.groups.x
        hit = reference.back((~groups.isfinite()).any(1, keepdim=True).expand_as(groups))
        return [self.judge(name, got[name], clean[name], (hit, case.how))
                for name in ("y", "dx") if name in got]

    def judge(self, name, got, clean, seen):
        hit, how = seen
        if not bool(hit.any()):
            return Outcome(PASS)
        if not same_bits(got[~hit], clean[~hit]):
            spread = not bool(got[~hit].isfinite().all())
            return failed(f"{name}: {how} in one group changes others") if spread else \
                Outcome(LIMIT, f"{name}: {how} in one group changes bits of others")
        if how == "nan" and not bool(got[hit].isnan().all()):
            return failed(f"{name}: NaN in x is swallowed: its group has finite results")
        if bool(got[hit].isfinite().all()):
            return failed(f"{name}: {how} in x gives finite results")
        return Outcome(PASS)


class Digits(Property):
    """Beside the bounds, which follow the data's condition: how far off y is for large means."""

    name, title = "digits", "y keeps its digits whatever the mean (to 16 eps)"
    allowed = 16

    def check(self, trial):
        if trial.dtype != torch.float32:
            raise Skip("for float32")

    def cases(self, trial):
        shapes = shapes_of(trial)
        shape = max(shapes, key=lambda s: (s[-1] if trial.claim.of_rows else 0) * (s[0] < 10))
        return [Case(shape, "mean", k, only="y") for k in (0, 4, 7, 10, 14, 20)]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        arrays.gain = None if arrays.gain is None else torch.full_like(
            arrays.gain, 1 - trial.claim.offset)
        arrays.bias = None if arrays.bias is None else torch.zeros_like(arrays.bias)
        got = trial.call(arrays, False)["y"].double()
        reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
        wanted = reference.y().value
        error = float((got - wanted).abs().max()) / max(1.0, float(wanted.abs().max()))
        share = error / (self.allowed * EPS)
        if share <= 1:
            return [Outcome(PASS, "", share)]
        return [Outcome(LIMIT, f"y is off by {error:.2g} where the mean is 2^{case.level} "
                        "deviations", share)]


PROPERTIES = (Forward, GradientOfX, GradientOfGain, GradientOfBias, Means, Range, Special,
              NonFinite, Digits)

"""Element types: 16 bits, mixed types, and float64 that is not computed in float32."""
import torch

from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, failed, refusal, usual_shape
from keel_judge.acid_test.samples import Arrays, Case
from keel_judge.acid_test.trial import Broken, short

COMBINATIONS = {"bf16": (torch.bfloat16, torch.bfloat16), "f16": (torch.float16, torch.float16),
                "bf16 x, f32 parameters": (torch.bfloat16, torch.float32),
                "f16 x, f32 parameters": (torch.float16, torch.float32),
                "f32 x, bf16 parameters": (torch.float32, torch.bfloat16)}
# float64 has 29 bits more; the reference computes in it, too, and may use up 9 of them.
MORE_DIGITS = 2.0**-20


class Types(Property):
    name, title = "types", "16-bit and mixed types are right, or refused"

    def cases(self, trial):
        names = [n for n in COMBINATIONS if "parameters" not in n or trial.has_gain]
        return [Case(usual_shape(trial), data, how=n) for n in names
                for data in ("normal", "shifted")]

    def run(self, trial, case, number):
        own, parameters = COMBINATIONS[case.how]
        plain = self.arrays(trial, case, number)
        arrays = Arrays(**{n: t.to(parameters if n in ("gain", "bias") else own)
                           for n, t in plain.items()})
        try:
            got = trial.call(arrays)
        except Broken as error:
            return [failed(f"{case.how}: {error}")]
        except Exception as error:
            return [refusal(error, case.how)]
        found = []
        if got["y"].dtype not in (own, torch.promote_types(own, parameters)):
            found.append(failed(f"{case.how}: y has type {short(got['y'].dtype)}"))
        for outcome in trial.compare(got, arrays):
            if "statistics are rounded" in outcome.words and trial.dtype != own:
                outcome.level = LIMIT  # a failure only of a type that is asked for
            if outcome.words:
                outcome.words = f"{case.how}: {outcome.words}"
            found.append(outcome)
        return found


class Float64(Property):
    name, title = "float64", "float64 is computed in float64, or refused"

    def check(self, trial):
        if not trial.adapter.has_float64:
            raise Skip("the library, or this adapter, has no float64")

    def cases(self, trial):
        return [Case(usual_shape(trial), data) for data in ("normal", "shifted")]

    def run(self, trial, case, number):
        plain = self.arrays(trial, case, number)
        arrays = Arrays(**{n: t.double() * (1 + 2.0**-40) for n, t in plain.items()})
        try:
            got = trial.call(arrays)
        except Broken as error:
            return [failed(f"float64: {error}")]
        except Exception as error:
            return [refusal(error, "float64")]
        reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
        expected = {"y": reference.y()} | reference.backward(arrays.dy)
        return [self.judge(n, t, expected[n]) for n, t in got.items()]

    def judge(self, name, got, expected):
        if got.dtype != torch.float64:
            return Outcome(LIMIT, f"{name} of float64 has type {short(got.dtype)}")
        error = (got - expected.value).abs()
        if bool((error > expected.error + torch.finfo(torch.float32).tiny).any()):
            return failed(f"{name} of float64 is wrong, by up to {float(error.max()):.3g}")
        if bool((error > MORE_DIGITS * expected.error).any()):
            return Outcome(LIMIT, f"{name} of float64 has the digits of float32")
        return Outcome(PASS)


PROPERTIES = (Types, Float64)

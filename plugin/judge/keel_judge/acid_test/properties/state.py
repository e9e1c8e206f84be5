"""Norms with a state: running statistics, evaluation, checkpoints, accumulation."""
import torch
from torch.utils.checkpoint import checkpoint

from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import FAIL, LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, failed, thinned
from keel_judge.acid_test.samples import Case, shapes_of
from keel_judge.acid_test.trial import same_bits
from keel_judge.measure import measure

STEPS = 3


class OfState(Property):
    needs_torch = True

    def check(self, trial):
        super().check(trial)
        if not trial.binding.has_state:
            raise Skip("the norm has no running statistics")

    def cases(self, trial):
        shapes = [s for s in shapes_of(trial) if s[0] > 2]
        return [Case(s, "normal") for s in thinned(trial, shapes[:4], 2)]

    def state(self, arrays):
        channels = arrays.x.shape[1]
        return {"running_mean": torch.linspace(-1, 1, channels),
                "running_var": torch.linspace(0.5, 2, channels)}

    def invoke(self, trial, arrays, state, training):
        trial.calls += 1
        return trial.binding.invoke(arrays.x, arrays.gain, arrays.bias,
                                    state | {"training": training})


class Running(OfState):
    name, title = "running statistics", "each step of training counts once, with its momentum"

    def run(self, trial, case, number):
        state = None
        found = []
        for step in range(STEPS):
            arrays = self.arrays(trial, case, number + 100 * step)
            state = state or self.state(arrays)
            before = {k: v.clone() for k, v in state.items()}
            self.invoke(trial, arrays, state, True)
            reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
            wanted = reference.running(before)
            found += [self.judge(k, state[k], wanted[k], (reference, before)) for k in wanted]
        return found

    def judge(self, name, got, wanted, seen):
        measured = measure(got, wanted, 4)
        if not bool(measured.wrong.any()):
            return Outcome(PASS, "", float(measured.share.max()))
        reference, before = seen
        for cause, value in self.forms(name, reference, before):
            if torch.allclose(got.double(), value, rtol=1e-4, atol=1e-6):
                return failed(f"{name} {cause}", float(measured.share.max()))
        return failed(f"{name} is off by up to {float((got - wanted.value).abs().max()):.3g}",
                      float(measured.share.max()))

    def forms(self, name, reference, before):
        """Wrong states that programs had; a cause explains, and decides nothing."""
        share = reference.claim.momentum
        exact, former = reference.running(before)[name].value, before[name].double()
        yield "stays as it was", former
        new = (exact - (1 - share) * former) / share
        yield "is counted twice", (1 - share) * exact + share * new
        yield "takes the momentum of the old value for that of the new", \
            share * former + (1 - share) * new
        biased = reference.running(before, count_less=0)[name].value
        yield "has the variance over n", biased


class Evaluation(OfState):
    name, title = "evaluation", "evaluation uses the state, and leaves it as it is"

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        state = self.state(arrays)
        before = {k: v.clone() for k, v in state.items()}
        y = self.invoke(trial, arrays, state, False)
        changed = [k for k in state if not same_bits(state[k], before[k])]
        found = [failed(f"evaluation changes {', '.join(changed)}")] if changed else []
        reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias,
                              (before["running_mean"].double(), before["running_var"].double()))
        found += trial.compare({"y": y.detach()}, arrays, reference)
        if trial.adapter.backward == "autograd" and not found[-1].level == FAIL:
            found += self.backward(trial, arrays, state, reference)
        return found

    def backward(self, trial, arrays, state, reference):
        leaves = {n: t.detach().clone().requires_grad_() for n, t in arrays.items() if n != "dy"}
        trial.calls += 1
        y = trial.binding.invoke(leaves["x"], leaves.get("gain"), leaves.get("bias"),
                                 state | {"training": False})
        grads = torch.autograd.grad(y, list(leaves.values()), arrays.dy.to(y.dtype))
        got = {f"d{n}": g for n, g in zip(leaves, grads)}
        return [failed(f"backward of evaluation: {o.words}", o.share) if o.level == FAIL else o
                for o in trial.compare(got, arrays, reference)]


class Recomputed(OfState):
    name, title = "checkpointing", "a step that is computed twice counts once"

    def check(self, trial):
        super().check(trial)
        if trial.adapter.backward != "autograd":
            raise Skip("no gradients by autograd")

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        plain, again = self.state(arrays), self.state(arrays)
        self.invoke(trial, arrays, plain, True)
        x = arrays.x.clone().requires_grad_()
        trial.calls += 2
        y = checkpoint(lambda t: trial.binding.invoke(t, arrays.gain, arrays.bias,
                                                      again | {"training": True}),
                       x, use_reentrant=False)
        dx, = torch.autograd.grad(y, x, arrays.dy.to(y.dtype))
        found = trial.compare({"dx": dx}, arrays)
        twice = [k for k in plain if not torch.equal(plain[k], again[k])]
        if twice:
            found.append(Outcome(LIMIT, f"{' and '.join(twice)} count twice under "
                                 "torch.utils.checkpoint"))
        return found


class Portions(OfState):
    name, title = "accumulation", "two half batches leave the state of the whole batch"

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        state, half = self.state(arrays), case.shape[0] // 2
        before = {k: v.clone() for k, v in state.items()}
        stepwise = before
        for part in (arrays.x[:half], arrays.x[half:]):
            reference = Reference(trial.claim, part, arrays.gain, arrays.bias)
            wanted = reference.running(stepwise)
            trial.calls += 1
            trial.binding.invoke(part, arrays.gain, arrays.bias, state | {"training": True})
            stepwise = {k: e.value.float() for k, e in wanted.items()}
        whole = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias).running(before)
        if not any(bool(measure(state[k], whole[k], 4).wrong.any()) for k in whole):
            return [Outcome(PASS)]
        far = [k for k in state if bool(measure(state[k], wanted[k], 4).wrong.any())]
        if far:
            return [failed(f"{' and '.join(far)} after two parts of a batch: of neither two steps "
                           "nor one")]
        return [Outcome(LIMIT, "statistics and state are those of each part of a batch")]


PROPERTIES = (Running, Evaluation, Recomputed, Portions)

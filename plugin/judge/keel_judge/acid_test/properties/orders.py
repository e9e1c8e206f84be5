"""Whether bits depend on the batch, on the order of rows, on threads, or on the run."""
import torch

from keel_judge.acid_test.outcome import LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, failed, thinned
from keel_judge.acid_test.samples import Arrays, Case, shapes_of
from keel_judge.acid_test.trial import same_bits


def axis_of(trial):
    """The axis along which results are independent: samples, or channels of a batch norm."""
    return 1 if trial.claim.extent == "batch" else 0


def taken(trial, arrays, places):
    """The arrays of some rows, or of some channels with their parameters."""
    axis = axis_of(trial)
    moved = {n: t.index_select(axis, places) for n, t in arrays.items() if n in ("x", "dy")}
    of_parameters = {n: (t[places] if axis == 1 else t) for n, t in arrays.items()
                     if n in ("gain", "bias")}
    return Arrays(**moved, **of_parameters)


class Rows(Property):
    name, title = "rows", "a row alone, in another batch or order has the same bits"

    def check(self, trial):
        if trial.binding.shape or (axis_of(trial) == 1 and trial.binding.width):
            raise Skip("the norm takes one shape only")

    def cases(self, trial):
        axis = axis_of(trial)
        shapes = [s for s in shapes_of(trial) if s[axis] > 2]
        if trial.claim.of_rows:
            width = trial.binding.width
            shapes = [(300, width or 40), (64, width or 512), *shapes]
        cases = [Case(s, "shifted", how=how) for s in shapes[:5]
                 for how in ("alone", "in another batch", "in another order")]
        return thinned(trial, cases, 5)

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        axis = axis_of(trial)
        count = case.shape[axis]
        places = {"alone": [count - 1], "in another batch": list(range(count // 3, count)),
                  "in another order": list(reversed(range(count)))}[case.how]
        places = torch.tensor(places)
        whole, part = trial.call(arrays), trial.call(taken(trial, arrays, places))
        return [self.judge(trial, n, (whole[n].index_select(axis, places), part[n]), case)
                for n in ("y", "dx") if n in whole]

    def judge(self, trial, name, both, case):
        whole, part = both
        if same_bits(whole, part):
            return Outcome(PASS)
        axis = axis_of(trial)
        differ = (whole != part).movedim(axis, 0).flatten(1).any(1).sum()
        size = float((whole.double() - part.double()).abs().max())
        words = f"{name}: {int(differ)} of {part.shape[axis]} rows {case.how} have other bits " \
            f"(by up to {size:.2g})"
        return Outcome(LIMIT, words, size)


class Threads(Property):
    name, title = "threads", "the same bits for 1, 2 and 3 threads"

    def check(self, trial):
        if trial.is_forked:
            raise Skip("in a forked process: name the callable as MODULE:NAME")
        if not trial.adapter.set_threads(1):
            raise Skip("the adapter cannot set threads")

    def cases(self, trial):
        shapes = sorted(shapes_of(trial), key=lambda s: -torch.Size(s).numel())[:2]
        if trial.claim.of_rows and not trial.binding.shape:
            shapes = [(2100, trial.binding.width or 72), *shapes[:1]]
        return thinned(trial, [Case(shape, "shifted") for shape in shapes], 2)

    def run(self, trial, case, number):
        arrays, results = self.arrays(trial, case, number), {}
        try:
            for count in (1, 2, 3):
                trial.adapter.set_threads(count)
                results[count] = trial.call(arrays)
        finally:
            trial.adapter.set_threads(1)
        found = []
        for name, value in results[1].items():
            differ = [c for c in (2, 3) if not same_bits(value, results[c][name])]
            if differ:
                far = [o for c in differ for o in trial.failures({name: results[c][name]}, arrays)]
                found += [failed(f"with {differ[0]} threads: {o.words}") for o in far[:1]] or [
                    Outcome(LIMIT, f"{name} has other bits with "
                            f"{' and '.join(map(str, differ))} threads")]
        return found or [Outcome(PASS)]


class Twice(Property):
    name, title = "repeats", "the same call gives the same bits"

    def cases(self, trial):
        return [Case(s, "normal") for s in thinned(trial, shapes_of(trial)[:6], 2)]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        first = trial.call(arrays)
        for _ in range(4):
            again = trial.call(arrays)
            differ = [n for n in first if not same_bits(first[n], again[n])]
            if differ:
                far = trial.failures(again, arrays)
                if far:
                    return [failed(f"another result when it is run again: {far[0].words}")]
                return [Outcome(LIMIT, f"{', '.join(differ)}: other bits when it is run again")]
        return [Outcome(PASS)]


PROPERTIES = (Rows, Threads, Twice)

"""Every callable must give the shape and type, leave its inputs unchanged, and keep its results."""
import os
import threading

from keel_judge.acid_test.outcome import FAIL, LIMIT, PASS, Outcome
from keel_judge.acid_test.properties.base import Property, thinned
from keel_judge.acid_test.samples import Case, shapes_of
from keel_judge.acid_test.trial import same_bits

FORKS = []
os.register_at_fork(before=lambda: FORKS.append(threading.get_ident()))


class Contract(Property):
    name, title = "contract", "returns x's shape and type, and leaves its inputs alone"

    def cases(self, trial):
        shapes = thinned(trial, shapes_of(trial), 3)
        return [Case(shape, "normal") for shape in shapes]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        forks, trial.changed = len(FORKS), set()
        got = trial.call(arrays)
        found = [Outcome(PASS)]
        if trial.changed:
            found.append(Outcome(FAIL, f"writes to its input {', '.join(sorted(trial.changed))}"))
        if len(FORKS) > forks:
            found.append(Outcome(LIMIT, "makes other processes"))
        wanted = {trial.dtype, trial.parameter_dtype} if trial.has_gain else {trial.dtype}
        if got["y"].dtype not in wanted:
            found.append(Outcome(FAIL, f"y has type {str(got['y'].dtype)[6:]}, x has "
                                 f"{str(trial.dtype)[6:]}"))
        return found


class Stays(Property):
    name, title = "results stay", "a later call leaves earlier results as they are"

    def cases(self, trial):
        return [Case(shape, "normal") for shape in thinned(trial, shapes_of(trial)[:3], 2)]

    def run(self, trial, case, number):
        first = self.arrays(trial, case, number)
        other = self.arrays(trial, case, number + 1000)
        got = trial.call(first)
        kept = {n: t.clone() for n, t in got.items()}
        trial.call(other)
        changed = [n for n, t in got.items() if not same_bits(t, kept[n])]
        if changed:
            return [Outcome(FAIL, f"a second call changes {', '.join(changed)} of the first")]
        again = trial.call(first)
        far = trial.failures(again, first)
        if far and not trial.failures(kept, first):
            return [Outcome(FAIL, "a call after others gives other results: " + far[0].words)]
        return [Outcome(PASS)]


PROPERTIES = (Contract, Stays)

"""The results of another run, on another machine or with another version: one run writes a file,
the other calls the norm on the same numbers."""
import pickle

import torch

from keel_judge.acid_test.outcome import LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, failed, thinned
from keel_judge.acid_test.samples import PLAIN, SPECIAL, Arrays, Case, shapes_of
from keel_judge.acid_test.trial import same_bits


def read_record(path):
    """The cases of a record, each with what the norm was given and what it gave."""
    try:
        with open(path, "rb") as file:
            record = torch.load(file, weights_only=True)
        return [{"claim": e["claim"], "case": Case(**e["case"]), "arrays": Arrays(**e["arrays"]),
                 "results": dict(e["results"])} for e in record]
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, ValueError):
        raise ValueError(f"{path}: expected a file of --record") from None


class Recorded(Property):
    name, title = "recorded", "the same bits as in the record of another run"

    def __init__(self):
        self.entries = []

    def check(self, trial):
        if not trial.record and not trial.against:
            raise Skip("asked for by --record and --against")

    def cases(self, trial):
        if trial.against:
            self.entries = read_record(trial.against)
            return [e["case"] for e in self.entries]
        kinds = PLAIN + SPECIAL
        return [Case(s, kinds[i % len(kinds)])
                for i, s in enumerate(thinned(trial, shapes_of(trial), len(kinds)))]

    def run(self, trial, case, number):
        if trial.against:
            return [self.compare(trial, self.entries[number])]
        arrays = self.arrays(trial, case, number)
        self.entries.append({"claim": trial.claim.text(), "case": vars(case),
                             "arrays": dict(arrays.items()), "results": trial.call(arrays)})
        torch.save(self.entries, trial.record)
        return [Outcome(PASS)]

    def compare(self, trial, entry):
        if entry["claim"] != trial.claim.text():
            return failed(f"the record is of {entry['claim']}")
        arrays, there = entry["arrays"], entry["results"]
        here = trial.call(arrays, "dx" in there)
        differ = [n for n in there if n in here and not same_bits(here[n], there[n])]
        for place, results in (("here", here), ("in the record", there)):
            far = trial.failures({n: results[n] for n in differ}, arrays)
            if far:
                return failed(f"{place}: {far[0].words}", far[0].share)
        apart = [f"{n} by up to {float((here[n].double() - there[n].double()).abs().max()):.2g}"
                 for n in differ]
        return Outcome(LIMIT, "within the bounds, but other bits: " + ", ".join(apart)) if differ \
            else Outcome(PASS)


PROPERTIES = (Recorded,)

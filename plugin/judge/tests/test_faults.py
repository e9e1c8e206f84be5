"""Planted faults are named at the op where they were planted, and nothing else is."""
import collections
import random
import unittest

import settings
import torch

import keel_judge
from faults import CHANGES, Fault
from honest import MODELS, Step

PLANTED = 500 if settings.THOROUGH else 10
NAMED = 0.99  # of the faults that are larger than the judge's power
SMALL = ("mlp", "cnn", "gpt", "encoder", "vit", "dlrm", "unet")
OPTIMIZERS = (torch.optim.AdamW,
              lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, foreach=True),
              lambda p, lr: torch.optim.AdamW(p, lr=lr, fused=True))


class Planted:
    """One fault in one step. `outcome` is named, suspect, blind or missed."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.name = chance.choice(list(MODELS) if settings.THOROUGH else SMALL)
        self.make = chance.choice(OPTIMIZERS)
        self.change = chance.choice([None] * 4 + list(CHANGES))
        self.seed, self.op, self.others = seed, "", []
        places = self.places(chance)
        chance.shuffle(places)
        for at in places[:8]:
            self.plant(at)
            if self.op:
                break

    def step(self):
        step = Step(self.name, self.seed, optimizer=self.make)
        step()
        torch.manual_seed(self.seed)
        return step

    def places(self, chance):
        step, count = self.step(), Fault(0)
        with count:
            step()
        wanted = CHANGES.get(self.change)
        return [n for n, op in enumerate(count.ops, 1) if wanted is None or op in wanted]

    def plant(self, at):
        step, fault = self.step(), Fault(at, self.change, self.seed)
        with fault, keel_judge.judge(step.model) as report:
            step()
        self.op = fault.planted
        if self.op:
            self.others = [f for f in report.findings if f.call != at]
            self.outcome = outcome_of(report, at, self.op)

    def kind(self):
        return self.change.__name__ if self.change else "one element by 1e-4"


def outcome_of(report, at, op):
    if any(f.call == at and f.op == op for f in report.findings):
        return "named"
    if any(f.call == at and f.op == op for f in report.suspect):
        return "suspect"
    if any(name == op for name, _ in report.not_judged):
        return "not judged"
    blind = [r for r in report.rows.values() if r.op == op and r.power > 1e-5]
    return "blind" if blind else "missed"


class Faults(unittest.TestCase):
    def test_planted(self):
        counts, missed, others = collections.Counter(), [], []
        seed = 0
        while sum(counts.values()) < PLANTED:
            planted = Planted(seed)
            seed += 1
            if not planted.op:
                continue
            counts[planted.outcome] += 1
            others += [f.text() for f in planted.others]
            if planted.outcome not in ("named", "suspect"):
                missed.append(f"{planted.outcome}: {planted.kind()} in {planted.op} of "
                              f"{planted.name}, seed {planted.seed}")
        if settings.THOROUGH:
            print(dict(counts), *missed, *others, sep="\n")
        self.assertEqual(others, [])
        self.assertEqual([m for m in missed if m.startswith(("missed", "not judged"))], [])
        found = counts["named"] + counts["suspect"]
        self.assertGreaterEqual(found, NAMED * PLANTED, missed)


if __name__ == "__main__":
    unittest.main()

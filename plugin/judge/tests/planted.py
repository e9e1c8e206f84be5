"""One planted fault: a network, an optimizer, a kind of fault and an op, all drawn from a seed."""
import random

import settings
import torch

import keel_judge
from faults import CHANGES, Fault
from honest import MODELS, Step

assert settings.ROOT
TRIES = 8  # ops that are tried until one takes the fault
OPTIMIZERS = {
    "AdamW": torch.optim.AdamW,
    "foreach SGD": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, foreach=True),
    "fused AdamW": lambda p, lr: torch.optim.AdamW(p, lr=lr, fused=True),
}


class Planted:
    """A fault in the second step of a training. `op` is where, or empty if no op of that step takes
    this kind; `outcome` is named, suspect, blind, not judged or missed; `others` are findings at
    other ops."""

    def __init__(self, seed, models=tuple(MODELS)):
        chance = random.Random(seed)
        self.model = chance.choice(models)
        self.optimizer = chance.choice(list(OPTIMIZERS))
        self.change = chance.choice([None] * len(CHANGES) + list(CHANGES))
        self.seed, self.op, self.others, self.phase = seed, "", [], ""
        places = self.places()
        chance.shuffle(places)
        for at in places[:TRIES]:
            self.plant(at)
            if self.op:
                break

    def step(self):
        step = Step(self.model, self.seed, optimizer=OPTIMIZERS[self.optimizer])
        step()
        torch.manual_seed(self.seed)
        return step

    def places(self):
        step, count = self.step(), Fault(0)
        with count:
            step()
        wanted = CHANGES.get(self.change)
        return [n for n, op in enumerate(count.ops, 1) if wanted is None or op in wanted]

    def plant(self, at):
        step, fault = self.step(), Fault(at, self.change, self.seed)
        with fault, keel_judge.judge(step.model, norms=False) as report:
            step()
        self.op, self.phase, self.at = fault.planted, fault.phase, at
        if self.op:
            self.others = [f for f in report.findings if f.call != at]
            self.outcome = outcome_of(report, at, self.op)
            self.row = max((r for r in report.rows.values() if r.op == self.op),
                           key=lambda r: r.share, default=None)

    def kind(self):
        return self.change.__name__.replace("_", " ") if self.change else "one element by 1e-4"

    def text(self):
        size = f": {self.row.share:.2g} of a bound of {self.row.power:.1e} of the values" \
            if self.row else ""
        return (f"{self.outcome}: {self.kind()} in {self.op} (op {self.at}, {self.phase}) of "
                f"{self.model} with {self.optimizer}, seed {self.seed}{size}")


def outcome_of(report, at, op):
    """The judge's word on the op where the fault was planted."""
    for found, outcome in ((report.findings, "named"), (report.suspect, "suspect")):
        if any(f.call == at and f.op == op for f in found):
            return outcome
    if any(name == op for name, _ in report.not_judged):
        return "not judged"
    # A bound of more than half of the fault hides some of its elements.
    blind = [r for r in report.rows.values() if r.op == op and r.power > 5e-5]
    return "blind" if blind else "missed"

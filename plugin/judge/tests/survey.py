"""Prints the numbers of bench/results/judge.md: honest steps and planted faults, over many seeds.

usage: survey.py honest [SEEDS] | faults [COUNT] [SEED]"""
import collections
import sys

import settings
import torch

import keel_judge
from honest import MODELS, Step
from planted import Planted


def honest(seeds):
    """Every network in f32 and bf16: ops judged, wrong, suspect and blind."""
    total = collections.Counter()
    for name in MODELS:
        counts = collections.Counter()
        for autocast in (False, True):
            for seed in range(seeds):
                step = Step(name, seed, autocast=autocast)
                step()
                with keel_judge.judge(step.model, norms=False) as report:
                    step()
                counts += collections.Counter(
                    steps=1, judged=report.judged, wrong=len(report.findings), blind=report.blind,
                    suspect=len(report.suspect), unjudged=report.not_judged.total(),
                    classes=report.classes.total())
                for finding in report.findings + report.suspect:
                    print(f"{name}, seed {seed}, bf16 {autocast}: {finding.text()}")
        print(name, dict(counts), flush=True)
        total += counts
    print("all", dict(total))


def planted_from(seed):
    while True:
        found = Planted(seed)
        if found.op:
            yield found
        seed += 1


def faults(count, seed):
    """Faults by kind: planted, named, suspect; every miss, and every other op that was named."""
    kinds, phases = collections.defaultdict(collections.Counter), collections.Counter()
    for _, found in zip(range(count), planted_from(seed)):
        kinds[found.kind()][found.outcome] += 1
        phases[found.phase] += 1
        for other in found.others:
            print(f"seed {found.seed}: also {other.text()}")
        if found.outcome != "named":
            print(found.text(), flush=True)
    total = collections.Counter()
    for kind, counts in sorted(kinds.items()):
        print(f"| {kind} | {counts.total()} | {dict(counts)} |")
        total += counts
    print("all", dict(total), "ops", dict(phases))


def main(words):
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} thread, "
          f"{torch.backends.cpu.get_cpu_capability()}")
    what, *numbers = words
    if what == "honest":
        honest(*map(int, numbers or ["20"]))
    else:
        faults(*(int(n) for n in (*numbers, *("500", "0")[len(numbers):])))


if __name__ == "__main__":
    assert settings.ROOT
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Prints which of the remade bugs each way of comparing notices, for bench/results/norm-acid.md.

usage: acid_compare.py [--correct]     --correct: only the last row, of the correct norms

A usual test calls the norm on normal numbers of two shapes and compares y, dx and the gradients of
the parameters with those of the formula in float64, cast to the type of the result. It compares by
`torch.allclose` or `torch.testing.assert_close` with their defaults, by gpucheck's `assert_close`,
or with the tolerances that gpuemu recommends for a layer norm, where these are installed. gpuemu's
own fuzzer is a program of Rust and is not run."""
import random
import sys

import settings
import torch

import correct_norms
from acid_bugs import BUGS
from keel_judge.acid_test.target import Target
from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.samples import Case
from test_acid import tried

SHAPES = {"rows": ((8, 64), (32, 256)), "channels": ((8, 6, 10), (16, 32, 4, 4))}


def ways():
    """name: a function of two tensors that says whether they are equal enough."""
    found = {"allclose": torch.allclose, "assert_close": holds(torch.testing.assert_close)}
    try:
        from gpucheck.assertions.close import assert_close
        found["gpucheck"] = holds(assert_close)
    except ImportError:
        pass
    try:
        from gpuemu.tolerances import get_recommended_tolerance
        found["gpuemu's tolerance"] = lambda a, b: torch.allclose(
            a, b, **vars(get_recommended_tolerance("layernorm", str(a.dtype)[6:])))
    except ImportError:
        pass
    return found


def holds(check):
    def is_equal(a, b):
        try:
            check(a, b)
        except AssertionError:
            return False
        return True
    return is_equal


def results(kernel, norm, options):
    """(got, expected) of a usual test, or None where the call itself fails."""
    trial = Target(kernel, {"as_": norm, "seed": 1, **options})()
    pairs = []
    for number, shape in enumerate(SHAPES["rows" if trial.claim.of_rows else "channels"]):
        arrays = trial.arrays(Case(shape), "usual", number)
        try:
            got = trial.call(arrays)
        except Exception:
            return None
        reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
        expected = {"y": reference.y()} | reference.backward(arrays.dy)
        pairs += [(t, expected[n].value.to(t.dtype)) for n, t in got.items()]
    return pairs


def notices(is_equal, pairs):
    return pairs is None or not all(is_equal(a, b) for a, b in pairs)


def bugs(methods):
    """The rows of the bugs, and how many each way notices."""
    counts, told = dict.fromkeys(methods, 0), 0
    for bug in BUGS:
        random.seed(0)
        pairs = results(bug.kernel, bug.norm, bug.options)
        seen = {n: notices(way, pairs) for n, way in methods.items()}
        level = tried(bug, [bug.tells], quick=bug.tells not in ("sizes", "forward")) \
            .verdicts[bug.tells].level
        told += level == bug.level
        for name in methods:
            counts[name] += seen[name]
        cells = ["yes" if s else "-" for s in seen.values()]
        print(f"| {bug.source} | {bug.tells}: {level} | {' | '.join(cells)} |", flush=True)
    print(f"| of {len(BUGS)} | {told} | {' | '.join(map(str, counts.values()))} |")


def correct(methods):
    """How many of the correct norms each way raises an alarm on."""
    alarms = dict.fromkeys(methods, 0)
    for norm, options in correct_norms.NORMS:
        pairs = results(norm, options["as_"], {k: v for k, v in options.items() if k != "as_"})
        for name, way in methods.items():
            alarms[name] += notices(way, pairs)
    print(f"| alarms on {len(correct_norms.NORMS)} correct norms | below | "
          f"{' | '.join(map(str, alarms.values()))} |")


def main():
    methods = ways()
    print(f"| bug | told by the acid test as | {' | '.join(methods)} |")
    print(f"|{'---|' * (2 + len(methods))}")
    if sys.argv[1:] != ["--correct"]:
        bugs(methods)
    correct(methods)


if __name__ == "__main__":
    assert settings.ROOT
    main()

#!/usr/bin/env python3
"""Prints which of the remade bugs each way of testing notices, for bench/results/norm-acid.md.

usage: acid_compare.py [--correct | --others]
       --correct: only the last row, of the correct norms
       --others: without the acid test

A usual test calls the norm on normal numbers of two shapes and compares y, dx and the gradients of
the parameters with those of the formula in float64, cast to the type of the result. It compares by
`torch.allclose` or `torch.testing.assert_close` with their defaults, by gpucheck's `assert_close`,
or with the tolerances that gpuemu recommends for a layer norm, where these are installed.

Other columns take the cases of these tools as well: gpucheck's shapes with its normal numbers, its
edge values, and the cases of gpuemu's seeded fuzzer, which compares only y. gpuemu's daemon is a
program of Rust that draws such cases and compares; its Python package has the same fuzzer."""
import random
import sys
from typing import NamedTuple

import settings
import torch

import correct_norms
from acid_bugs import BUGS
from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.samples import Case
from keel_judge.acid_test.target import Target
from test_acid import tried

SHAPES = {"rows": ((8, 64), (32, 256)), "channels": ((8, 6, 10), (16, 32, 4, 4))}
GPUCHECK_SHAPES, LARGEST = 25, 300
GPUEMU_CASES = 6


class Way(NamedTuple):
    """How a test compares, the inputs of its calls, and which results it looks at."""

    is_equal: object
    cases: object
    with_gradients: bool = True


def usual_cases(trial):
    dims = trial.binding.dims  # of x, where a module takes only these
    shapes = [s for s in SHAPES["rows" if trial.claim.of_rows else "channels"]
              if not dims or len(s) in dims]
    return [trial.arrays(Case(shape), "usual", number) for number, shape in enumerate(shapes)]


def gpucheck_shapes(trial):
    """Its shapes of 2 axes, or of 3 with channels; without those that the norm need not take."""
    from gpucheck.fuzzing import fuzz_shapes
    ndim = 2 if trial.claim.of_rows else 3
    if ndim not in (trial.binding.dims or (ndim,)):
        return []
    found = fuzz_shapes(ndim, max_size=LARGEST if ndim == 2 else 40, n=GPUCHECK_SHAPES, seed=1)
    return [s for s in found if 0 not in s and (
        trial.claim.of_rows or (s[1] % trial.claim.groups == 0 and s[2] > 1))]


def gpucheck_cases(trial):
    from gpucheck.fuzzing import random_inputs
    for number, shape in enumerate(gpucheck_shapes(trial)):
        arrays = trial.arrays(Case(shape), "gpucheck", number)
        arrays.x = random_inputs(shape, trial.dtype, seed=number)
        yield arrays


def gpucheck_edges(trial):
    from gpucheck.fuzzing import mixed_inputs
    for shape in gpucheck_shapes(trial)[-1:]:
        for _, x in mixed_inputs(shape, trial.dtype, seed=1):
            arrays = trial.arrays(Case(shape), "gpucheck", 0)
            arrays.x = x
            yield arrays


def gpuemu_cases(trial):
    from gpuemu.validate import FuzzConfig, SeededFuzzer, generate_random_tensor
    fuzzer = SeededFuzzer(FuzzConfig(1, [1, 2], [64, 128, 256], [256, 512], ["float32"],
                                     ["contiguous"], [[1, 1]]))
    for case in fuzzer.iterator(GPUEMU_CASES):
        dims = trial.binding.dims or ((1, 2, 3) if trial.claim.of_rows else (3,))
        if len(case.shape) not in dims:
            continue
        arrays = trial.arrays(Case(case.shape), "gpuemu", 0)
        for name, tensor in arrays.items():
            drawn = generate_random_tensor(case.seed, tuple(tensor.shape), domain=name)
            setattr(arrays, name, torch.from_numpy(drawn).to(tensor.dtype))
        yield arrays


def ways():
    """The ways by name, as far as their tools are installed."""
    found = {"allclose": Way(torch.allclose, usual_cases),
             "assert_close": Way(holds(torch.testing.assert_close), usual_cases)}
    try:
        from gpucheck.assertions import close
        assert_close, close.format_mismatch_report = close.assert_close, lambda *_, **__: ""
        is_equal = holds(lambda a, b: assert_close(a, b, nan_equal=True))
        found |= {"gpucheck": Way(holds(assert_close), usual_cases),
                  "gpucheck's shapes": Way(is_equal, gpucheck_cases),
                  "gpucheck's edge values": Way(is_equal, gpucheck_edges)}
    except ImportError:
        pass
    try:
        from gpuemu.tolerances import get_recommended_tolerance

        def is_near(a, b):
            return torch.allclose(a, b, **vars(get_recommended_tolerance(
                str(a.dtype)[6:], "pytorch", "layernorm")))
        found |= {"gpuemu's tolerance": Way(is_near, usual_cases),
                  "gpuemu's fuzzer": Way(is_near, gpuemu_cases, False)}
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


def notices(way, kernel, norm, options):
    """Whether a call fails, or has a result that is not equal enough to the formula's."""
    trial = Target(kernel, {"as_": norm, "seed": 1, **options})()
    for arrays in way.cases(trial):
        try:
            got = trial.call(arrays, way.with_gradients)
        except Exception:
            return True
        reference = Reference(trial.claim, arrays.x, arrays.gain, arrays.bias)
        expected = {"y": reference.y()}
        if way.with_gradients:
            expected |= reference.backward(arrays.dy)
        if not all(way.is_equal(t, expected[n].value.to(t.dtype)) for n, t in got.items()):
            return True
    return False


def bugs(methods, with_acid=True):
    """The rows of the bugs, and how many each way notices."""
    counts, told = dict.fromkeys(methods, 0), 0
    for bug in BUGS:
        cells = [bug.source]
        if with_acid:
            level = tried(bug, [bug.tells], quick=bug.tells not in ("sizes", "forward")) \
                .verdicts[bug.tells].level
            told += level == bug.level
            cells.append(f"{bug.tells}: {level}")
        for name, way in methods.items():
            random.seed(0)
            is_seen = notices(way, bug.kernel, bug.norm, bug.options)
            counts[name] += is_seen
            cells.append("yes" if is_seen else "-")
        print(f"| {' | '.join(cells)} |", flush=True)
    cells = [f"of {len(BUGS)}", *([told] if with_acid else []), *counts.values()]
    print(f"| {' | '.join(map(str, cells))} |")


def correct(methods, with_acid=True):
    """How many of the correct norms each way raises an alarm on."""
    alarms = dict.fromkeys(methods, 0)
    for norm, options in correct_norms.NORMS:
        others = {k: v for k, v in options.items() if k != "as_"}
        for name, way in methods.items():
            alarms[name] += notices(way, norm, options["as_"], others)
    cells = [f"alarms on {len(correct_norms.NORMS)} correct norms",
             *(["below"] if with_acid else []), *alarms.values()]
    print(f"| {' | '.join(map(str, cells))} |")


def main():
    methods, with_acid = ways(), sys.argv[1:] != ["--others"]
    heads = ["bug", *(["told by the acid test as"] if with_acid else []), *methods]
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")
    if sys.argv[1:] != ["--correct"]:
        bugs(methods, with_acid)
    correct(methods, with_acid)


if __name__ == "__main__":
    assert settings.ROOT
    main()

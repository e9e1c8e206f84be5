"""Sizes 0 and 1, odd ones, and those beyond 2^16 and 2^31."""
import math

import torch

from keel_judge.acid_test.outcome import FAIL, LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import Property, refusal, thinned
from keel_judge.acid_test.samples import Arrays, Case

ROWS = ((0, 16), (1, 1), (1, 2), (5, 1), (3, 3), (3, 5), (2, 7), (4, 15), (3, 17), (3, 31),
        (3, 63), (2, 127), (3, 255), (2, 257), (2, 511), (2, 513), (2, 1023), (2, 2049), (3, 4097))
LARGE_ROWS = ((65535, 2), (65537, 3), (66000, 5), (2, 65537), (1, 131075), (2**18 + 1, 2))
CHANNELS = ((0, 4, 3), (1, 4, 3), (2, 2, 1), (1, 2, 2), (3, 6, 1), (2, 10, 3), (2, 34, 5),
            (3, 130, 2), (2, 258, 3), (5, 2, 127), (2, 4, 1025))
LARGE_CHANNELS = ((65537, 2, 2), (2, 4, 65537), (66000, 4, 1))
HUGE = (2**20 + 1, 2048)  # more than 2^31 elements


class Sizes(Property):
    name, title = "sizes", "sizes 0, 1, odd ones and those beyond 2^16"

    def check(self, trial):
        if trial.binding.shape:
            raise Skip("the norm takes one shape only")

    def cases(self, trial):
        small, large = (ROWS, LARGE_ROWS) if trial.claim.of_rows else (CHANNELS, LARGE_CHANNELS)
        width = trial.binding.width
        if width:
            place = -1 if trial.claim.of_rows else 1
            small, large = ([with_width(s, place, width) for s in group]
                            for group in (small, large))
        shapes = [*small, *[s for s in large if math.prod(s) < 3e6]]
        if trial.claim.extent == "group":
            shapes = [s for s in shapes if s[1] % trial.claim.groups == 0]
        shapes = [s for s in dict.fromkeys(map(tuple, shapes)) if self.fits(trial, s)]
        if trial.is_quick:
            shapes = [s for s in shapes if math.prod(s) < 3e5]
        return thinned(trial, [Case(s, "shifted") for s in shapes], 10)

    def fits(self, trial, shape):
        dims = trial.binding.dims
        return not dims or len(shape) in dims

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        try:
            got = trial.call(arrays)
        except (ValueError, RuntimeError, TypeError, IndexError, ZeroDivisionError) as error:
            tiny = 0 in case.shape or math.prod(case.shape[1:]) <= 2 or case.shape[0] == 1
            outcome = refusal(error, f"shape {list(case.shape)}")
            outcome.level = LIMIT if tiny else FAIL
            return [outcome]
        if 0 in case.shape:
            return [Outcome(FAIL, f"{n} of no rows is not 0") for n in ("dgain", "dbias")
                    if n in got and bool((got[n] != 0).any())] or [Outcome(PASS)]
        return trial.compare(got, arrays)


def with_width(shape, place, width):
    shape = list(shape)
    shape[place] = width
    return tuple(shape)


class Huge(Property):
    name, title = "2^31 elements", "more than 2^31 elements"

    def check(self, trial):
        if not trial.is_large:
            raise Skip("needs much memory: asked for by --large")
        if not trial.claim.of_rows or trial.binding.width:
            raise Skip("for norms over rows of any width")
        if memory_free() < 5 * 2 * math.prod(HUGE):
            raise Skip(f"needs {10 * math.prod(HUGE) / 1e9:.0f} GB")

    def cases(self, trial):
        return [Case(HUGE, "normal", only="y")]

    def run(self, trial, case, number):
        """Rows repeat every 1,024, so that the last ones must equal the first."""
        piece = trial.arrays(Case((1024, HUGE[1])), self.name, number)
        x = piece.x.to(torch.bfloat16).repeat(HUGE[0] // 1024 + 1, 1)[:HUGE[0]]
        gain, bias = (t if t is None else t.to(torch.bfloat16) for t in (piece.gain, piece.bias))
        y = trial.adapter.forward(Arrays(x, gain, bias))["y"]
        first = Arrays(x[:1024], gain, bias)
        found = []
        for start in (0, 2**20 - 1024, 2**20 - 2**19):
            rows = {"y": y[start:start + 1024]}
            found += trial.failures(rows, first)
        found += trial.failures({"y": y[-1:]}, Arrays(x[-1:], gain, bias))
        return found or [Outcome(PASS)]


def memory_free():
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(1024 * int(line.split()[1]) for line in lines
                        if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 0


PROPERTIES = (Sizes, Huge)

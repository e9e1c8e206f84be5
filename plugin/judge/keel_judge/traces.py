"""Two runs of a program: one is recorded, the other is held to the record.

The second run takes over each result of the record after it was compared, so that rounding does
not pile up and the first difference is that of one op."""
import contextlib
import json
import os

import torch

from keel_judge.judge import judge
from keel_judge.measure import distance, rounded_bound
from keel_judge.rounding import FORMATS

INDEX = "ops.jsonl"


def key_of(name, place, counts):
    """The key of an op in both runs: its name, its place, and its number there."""
    plain = name.removesuffix("_")
    key = f"{place.module}/{place.phase}/{plain}"
    counts[key] = counts.get(key, 0) + 1
    return f"{key}/{counts[key]}"


def errors_of(results, expected):
    """How far each result may be off, in float64; None where there is no rule."""
    if expected is None:
        return [None] * len(results)
    bounds = []
    for result, wanted in zip(results, expected):
        if wanted is None or not result.got.is_floating_point():
            bounds.append(None)
            continue
        bounds.append(torch.as_tensor(rounded_bound(wanted, result.got, 8)).float())
    return bounds


class Recorder:
    """Writes every op's results and what they may be off by."""

    def __init__(self, folder):
        self.folder, self.counts, self.number = folder, {}, 0
        os.makedirs(folder, exist_ok=True)
        self.index = open(os.path.join(folder, INDEX), "w", encoding="utf-8")

    def __call__(self, name, place, results, expected):
        file = f"{self.number}.pt"
        self.number += 1
        torch.save({"results": [r.got.detach().cpu().clone() for r in results],
                    "errors": errors_of(results, expected)}, os.path.join(self.folder, file))
        self.index.write(json.dumps({"key": key_of(name, place, self.counts), "op": name,
                                     "line": place.line, "file": file}) + "\n")

    def close(self):
        self.index.close()


@contextlib.contextmanager
def record(folder, model=None, **options):
    """Judges a program as `judge` does and writes its results into a folder."""
    recorder = Recorder(folder)
    try:
        with judge(model, watch=recorder, **options) as report:
            yield report
    finally:
        recorder.close()


def read_index(folder):
    path = os.path.join(folder, INDEX)
    entries = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                entries[entry["key"]] = entry
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{path}:{number}: expected an object with a key and a file") \
                    from None
    return entries


class Difference:
    """The first op whose results differ by more than both runs may be off."""

    def __init__(self, name, place, which):
        self.op, self.module, self.phase, self.line = name, *place
        self.output, self.index, self.here, self.there, self.allowed = which

    def text(self):
        return (f"{self.op}  in {self.module or '(no module)'}, {self.phase}, {self.line}\n"
                f"  {self.output}{list(self.index)}: here {self.here:.9g}, recorded "
                f"{self.there:.9g}; both may be off by {self.allowed:.3g}")


class Comparer:
    """Holds results to a record, then takes the recorded ones over."""

    def __init__(self, folder):
        self.folder, self.entries, self.counts = folder, read_index(folder), {}
        self.differences, self.missing, self.compared = [], [], 0

    def __call__(self, name, place, results, expected):
        key = key_of(name, place, self.counts)
        entry = self.entries.pop(key, None)
        if entry is None:
            self.missing.append(key)
            return
        saved = torch.load(os.path.join(self.folder, os.path.basename(entry["file"])),
                           weights_only=True)
        if [r.got.shape for r in results] != [t.shape for t in saved["results"]]:
            self.missing.append(f"{key} (other shapes)")
            return
        self.compared += 1
        own = errors_of(results, expected)
        for result, there, error, mine in zip(results, saved["results"], saved["errors"], own):
            self._compare(name, place, result, (there, error, mine))
            with torch.no_grad():
                result.got.copy_(there)

    def _compare(self, name, place, result, recorded):
        there, error, mine = recorded
        here = result.got.detach().cpu().double()
        there = there.double()
        has_bounds = error is not None and mine is not None
        allowed = sum_of(error, mine, here)
        if allowed is None or (result.got.is_floating_point() and not has_bounds):
            return  # nobody knows how far off rounding may be
        largest = FORMATS.get(result.got.dtype, FORMATS[torch.float32]).largest
        beyond = distance(here, there, allowed, largest) > allowed
        if bool(beyond.any()):
            place_of = tuple(beyond.nonzero()[0].tolist())
            self.differences.append(Difference(name, place, (
                result.name, place_of, float(here[place_of]), float(there[place_of]),
                float(allowed[place_of]))))


def sum_of(error, mine, here):
    """The error that both runs may have together; 0 where values are whole numbers."""
    if error is None or mine is None:
        return None if error is not mine else torch.zeros_like(here)
    return error.double() + mine.double()


class Comparison:
    """`first` is the first Difference or None; `report` is this run's own."""

    def __init__(self, comparer, report):
        self.comparer, self.report = comparer, report

    @property
    def first(self):
        return self.comparer.differences[0] if self.comparer.differences else None

    @property
    def ok(self):
        return self.first is None

    def text(self):
        c = self.comparer
        lines = [f"{c.compared} ops compared, {len(c.differences)} differ"]
        if self.first:
            lines.append("the first: " + self.first.text())
        if c.missing:
            lines.append(f"{len(c.missing)} ops are not in the record, {c.missing[0]} first")
        if c.entries:
            first = next(iter(c.entries))
            lines.append(f"{len(c.entries)} recorded ops did not run, {first} first")
        return "\n".join(lines)


@contextlib.contextmanager
def against(folder, model=None, **options):
    """Runs a program and compares it with a record; gives a Comparison."""
    comparer = Comparer(folder)
    with judge(model, watch=comparer, **options) as report:
        yield Comparison(comparer, report)

#!/usr/bin/env python3
"""Checks the tables of bench/norm_errors.py: the CSV and its summary on synthetic errors, and the
page of results, whose tables are the summary of the CSV beside it.

usage: tests/docs/check_norm_errors.py ROOT"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else \
    pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import norm_error_tables as tables  # noqa: E402

RESULTS = ROOT / "bench/results"


def row(library, case, result, units):
    """An error of LayerNorm in float32; None for a result that is not finite."""
    finite = units is not None
    return {"norm": "LayerNorm", "type": "float32", "case": case, "library": library,
            "result": result, "finite": finite, "units": units,
            "absolute": units / 4 if finite else None, "bound": {"y": 16}.get(result, 64)}


FOUND = [row("keel", "mean / deviation 0", "y", 1.5),
         row("other", "mean / deviation 0", "y", 15.96),
         row("keel", "mean / deviation 0", "dx", 2),
         row("other", "mean / deviation 0", "dx", 3),
         row("keel", "mean / deviation 0", "dgain", 63.6),
         row("other", "mean / deviation 0", "dgain", 65),
         row("keel", "mean / deviation 1", "y", 17),
         row("other", "mean / deviation 1", "y", 250),
         row("keel", "x subnormal", "y", None),
         row("keel", "x up to 1e+20", "y", 1),
         row("other", "x up to 1e+20", "y", 0),
         row("keel", "all x = 0", "y", 0)]


class Tables(unittest.TestCase):
    def setUp(self):
        self.lines = list(tables.full(FOUND, ["keel", "other"]))

    def line(self, error, name):
        found = [each for each in self.lines if (each["error"], each["input"]) == (error, name)]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_cells_and_verdicts(self):
        line = self.line("y", "mean / deviation 0")
        self.assertEqual((line["keel"], line["other"], line[tables.VERDICT]),
                         ("1.5", "16", "holds"))
        line = self.line("dx, dgain, dbias", "mean / deviation 0")
        self.assertEqual((line["keel"], line["other"], line[tables.VERDICT]),
                         ("64", "65", "holds"))
        self.assertEqual(self.line("y", "mean / deviation 1")[tables.VERDICT], "exceeded")
        line = self.line("y", "x subnormal")
        self.assertEqual((line["keel"], line["other"], line[tables.VERDICT]),
                         ("not finite", "-", "exceeded"))
        self.assertEqual(self.line("y, absolute", "mean / deviation 1")["other"], "6.2e+01")

    def test_csv_is_read_as_it_was_written(self):
        text = tables.to_csv(self.lines, ["keel", "other"])
        self.assertEqual(tables.from_csv(text), (self.lines, ["keel", "other"]))

    def test_runs_of_several_libraries_are_merged(self):
        files = [(list(tables.full([row for row in FOUND if row["library"] == name], [name])),
                  [name]) for name in ("keel", "other")]
        self.assertEqual(tables.merged(files), (self.lines, ["keel", "other"]))
        self.assertEqual(tables.merged(files[::-1])[0][0][tables.VERDICT], "holds")

    def test_summary(self):
        self.assertEqual(list(tables.summary(self.lines, ["keel", "other"])), [
            "| norm | results | keel | other |", "|---|---|---|---|",
            "| LayerNorm, float32 | y | 3 of 5 | 2 of 3 |",
            "| LayerNorm, float32 | dx, dgain, dbias | 1 of 1 | 0 of 1 |", "",
            "| norm | input | keel | other |", "|---|---|---|---|",
            "| LayerNorm, float32 | mean up to 2^23 deviations | 17 | 2.5e+02 |",
            "| LayerNorm, float32 | x from subnormal to 3e38 | 1 not finite | 0 |",
            "| LayerNorm, float32 | all x alike | 0 | - |"])

    def test_page(self):
        page = (RESULTS / "norm-errors.md").read_text(encoding="utf-8").splitlines()
        lines, libraries = tables.from_csv((RESULTS / "norm-errors.csv").read_text())
        self.assertGreater(len(lines), 300)
        self.assertEqual([line for line in page if line.startswith("|")],
                         [line for line in tables.summary(lines, libraries) if line])


if __name__ == "__main__":
    unittest.main()

"""The report of a wrong op, and the options of judging."""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom
from unittest import mock

import settings
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import keel_judge
from faults import Fault
from honest import Step
from keel_judge import command, writers
from keel_judge.call import name_of
from keel_judge.pattern import pattern_of
from keel_judge.places import Place
from keel_judge.report import Report
from keel_judge.sample import Sample

SCRIPT = """import sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.ReLU())
if "loose" in sys.argv:
    model[1].eps = 1e-3
ends = {"value": ValueError("a value of the script"), "file": OSError("a file of the script"),
        "stop": KeyboardInterrupt(), "end": SystemExit(9)}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    if sys.argv[1] in ends:
        raise ends[sys.argv[1]]
"""
FIXTURE = """import torch
from faults import Fault

def test_right(judged):
    with judged():
        torch.randn(4, 4) @ torch.randn(4, 4)

def test_wrong(judged):
    x = torch.randn(4, 4)
    with Fault(1), judged():
        x @ x
"""


def planted(op="mm", **options):
    """A report of an MLP's step with a fault in the last call of an op."""
    step, count = Step("mlp"), Fault(0)
    with count:
        step()
    at = max(n for n, name in enumerate(count.ops, 1) if name == op)
    step, fault = Step("mlp"), Fault(at)
    with fault, keel_judge.judge(step.model, **options) as report:
        step()
    return report, at


class Spoiled(TorchDispatchMode):
    """Moves one element of every result of an op, at a known place."""

    def __init__(self, op, place):
        super().__init__()
        self.op, self.place = op, place

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if name_of(func) == self.op:
            with torch.no_grad():
                result[self.place] += 1
        return result


class Reports(unittest.TestCase):
    def test_place_of_the_worst(self):
        """For shapes whose axes differ, and in the second of two wrong places if that is worse."""
        for op, shapes, place in (("mm", ((5, 3), (3, 7)), (1, 6)),
                                  ("mm", ((2, 3), (3, 9)), (1, 2)),
                                  ("bmm", ((2, 5, 3), (2, 3, 4)), (1, 4, 2)),
                                  ("mm", ((1, 3), (3, 4)), (0, 3))):
            a, b = (torch.randn(shape) for shape in shapes)
            with self.subTest(op=op, place=place):
                with Spoiled(op, place), keel_judge.judge() as report:
                    y = a @ b
                finding, = report.findings
                self.assertEqual(finding.index, place)
                self.assertEqual(finding.got, float(y[place]))
                self.assertAlmostEqual(finding.expected, float((a.double() @ b.double())[place]))
                self.assertIn(f"output 0{list(place)}: got", finding.text())
        with Spoiled("bmm", (0, 1, 2)), Spoiled("bmm", (1, 4, 3)), Spoiled("bmm", (1, 4, 3)), \
                keel_judge.judge() as report:
            torch.ones(2, 5, 3) @ torch.ones(2, 3, 4)  # elements of one bound
        self.assertEqual((report.findings[0].index, report.findings[0].wrong), ((1, 4, 3), 2))

    def test_place_of_a_difference(self):
        a, b = torch.randn(2, 5, 3), torch.randn(2, 3, 4)
        with tempfile.TemporaryDirectory() as folder:
            with keel_judge.record(folder):
                torch.bmm(a, b)
            with Spoiled("bmm", (1, 4, 2)), keel_judge.against(folder) as other:
                torch.bmm(a, b)
        self.assertEqual(other.first.index, (1, 4, 2))
        self.assertAlmostEqual(other.first.here - other.first.there, 1, 5)

    def test_finding(self):
        report, at = planted()
        self.assertEqual(len(report.findings), 1, report.text())
        finding = report.findings[0]
        self.assertEqual((finding.op, finding.phase, finding.call), ("mm", "backward", at))
        self.assertEqual(finding.module, "0")
        self.assertTrue(finding.line.split(":")[0].endswith("honest.py"), finding.line)
        self.assertEqual((finding.pattern, finding.wrong), ("one element", 1))
        self.assertAlmostEqual(finding.got / finding.expected, 1.0001, 5)
        self.assertGreater(finding.times(), 10)
        for word in ("mm  in 0, backward", "times the bound", "float32", "[64, 16]", "cpu"):
            self.assertIn(word, finding.text())

    def test_files(self):
        report, _ = planted()
        read = json.loads(writers.as_json(report))
        self.assertEqual((read["ok"], read["findings"][0]["op"]), (False, "mm"))
        self.assertGreater(read["judged"], 100)
        suite = xml.dom.minidom.parseString(writers.as_junit(report)).documentElement
        self.assertEqual(suite.getAttribute("failures"), "1")
        self.assertIn("one element", suite.getElementsByTagName("failure")[0].toxml())
        self.assertIn('<td class="WRONG">WRONG</td>', writers.as_html(report))

    def test_every_count_has_its_field(self):
        report = Report(judged=1, blind=2, strangers=3, norms_left=4, steps=5, seconds=6.5)
        report.not_judged["inv", "no rule"] = 7
        report.classes["conv2d", "steps in 16 bits"] = 8
        row = report.row("mm", Place("layer", "forward", "x.py:1"))
        row.calls, row.share, row.power, row.blind, row.suspect, row.wrong = 9, 0.5, 0.25, 10, 11, 0
        self.assertEqual(json.loads(writers.as_json(report)), {
            "ok": True, "judged": 1, "steps": 5, "blind": 2, "seconds": 6.5, "findings": [],
            "suspect": [], "not_judged": [{"op": "inv", "reason": "no rule", "count": 7}],
            "classes": [{"op": "conv2d", "kernels": "steps in 16 bits", "count": 8}],
            "strangers": 3, "norms_left": 4, "norms": [],
            "rows": [{"op": "mm", "module": "layer", "phase": "forward", "calls": 9, "share": 0.5,
                      "power": 0.25, "blind": 10, "suspect": 11, "wrong": 0,
                      "verdict": "suspect"}]})

    def test_dump_runs_alone(self):
        """The fault was planted, so that the op alone is right; a broken op stays wrong."""
        with tempfile.TemporaryDirectory() as folder:
            report, _ = planted("addmm", dump=folder)
            script = report.findings[0].dump
            done = subprocess.run([sys.executable, script], capture_output=True, text=True,
                                  env=os.environ | {"PYTHONPATH": str(settings.ROOT)},
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("1 ops judged in 1 steps: 0 wrong", done.stdout)

    def test_a_small_share_leaves_whole_steps_out(self):
        step = Step("mlp")
        with keel_judge.judge(step.model) as report:
            step()
        ops, share, steps = report.judged, 0.02, 200
        with keel_judge.judge(step.model, share=share, seed=3) as report:
            found = [0]
            for _ in range(steps):
                step()
                found.append(report.judged)
        idle = sum(a == b for a, b in zip(found, found[1:]))
        # Four steps of five are left out; few of the others have no op in the sample.
        self.assertGreater(idle, 0.7 * steps)
        self.assertLess(idle, 0.9 * steps)
        # The number of sampled steps is binomial; 5 deviations.
        deviation = (steps * 0.2 * 0.8) ** 0.5 * 0.1 * ops + (steps * share * ops) ** 0.5
        self.assertAlmostEqual(report.judged, share * ops * steps, delta=5 * deviation)

    def test_a_cost_is_kept(self):
        """Steps of 1 s, and of 4 s where they are judged; the first takes 9 s: 4 s for setting up,
        which the program would need without the judge, and 4 s for judging."""
        clock = [0.0]
        with mock.patch("time.perf_counter", lambda: clock[0]):
            sample, total, taken = Sample(keel_judge.Options(cost=0.2)), 0.0, []
            for number in range(400):
                took = 9.0 if number == 0 else 4.0 if sample.takes_step else 1.0
                taken.append(sample.takes_step)
                total, clock[0] = total + took, clock[0] + took
                sample.next_step(4.0 + 3.0 * (sum(taken) - 1))
        self.assertTrue(taken[0] and not taken[1])
        self.assertLessEqual(total - 4, 1.2 * 400)
        self.assertGreater(sum(taken), 20)

    def test_a_cost_is_kept_by_uneven_steps(self):
        """Steps of 1 s, and of 2 s to 14 s where they are judged."""
        clock, random_times = [0.0], random.Random(0)
        for _ in range(50):
            with mock.patch("time.perf_counter", lambda: clock[0]):
                sample, total = Sample(keel_judge.Options(cost=0.2)), 0.0
                for number in range(300):
                    added = random_times.choice((1.0, 13.0)) if sample.takes_step else 0.0
                    first = added if number == 0 else first
                    total, clock[0] = total + 1 + added, clock[0] + 1 + added
                    sample.next_step(first)
            self.assertLessEqual(total, 1.2 * 300)

    def test_options(self):
        for options, most in (({"ops": ("*norm*",)}, 10), ({"modules": ("4",)}, 10),
                              ({"share": 0.1}, 40), ({"cost": 0.2}, 40), ({"seconds": 0.0}, 0),
                              ({"rank": 3}, 0), ({"every": 2}, 10**6)):
            with self.subTest(options=options):
                step = Step("mlp")
                with keel_judge.judge(step.model, **options) as report:
                    step()
                self.assertLessEqual(report.judged, most)
                self.assertEqual(report.steps, 1)
        step = Step("mlp")
        with keel_judge.judge(step.model, every=2) as twice:
            step()
            step()
        self.assertEqual((twice.judged, twice.steps), (report.judged, 2))
        with keel_judge.judge(step.model, memory=100.0) as small:
            step()
        self.assertTrue(any(reason.startswith("memory") for _, reason in small.not_judged))
        q = torch.randn(1, 1, 512, 8)
        with keel_judge.judge(memory=2e6) as long:
            nn.functional.scaled_dot_product_attention(q, q, q)
        self.assertEqual({op for op, reason in long.not_judged if reason.startswith("memory")},
                         {"_scaled_dot_product_flash_attention_for_cpu"}, long.text())

    def test_first(self):
        report, at = planted("addmm", first=True)
        self.assertEqual(len(report.findings), 1)
        self.assertLess(report.judged, at + 1)

    def test_not_judged(self):
        """Ops without a rule and types without a judge are counted, with the reason."""
        with keel_judge.judge() as report:
            torch.linalg.inv(torch.eye(3) * 2)
            torch.ones(3, dtype=torch.float64) + 1
            torch.ones(3, dtype=torch.complex64) * 2
        reasons = {reason for _, reason in report.not_judged}
        self.assertTrue(report.ok)
        self.assertIn("no rule", reasons)
        self.assertIn("float64: the judge has no wider type", reasons)
        self.assertIn("complex numbers", reasons)

    def test_blind(self):
        """A sum of numbers that cancel is never said to be right."""
        x = torch.randn(20000)
        x = torch.cat([x, -x, torch.tensor([1e-6])])
        with keel_judge.judge() as report:
            x.sum()
        self.assertEqual((report.blind, report.ok), (1, True))
        self.assertEqual(report.ranked()[-1].verdict(), "blind")

    def test_patterns(self):
        wrong = torch.zeros(8, 32, dtype=torch.bool)
        cases = {"all of index 3 of axis 0": (slice(3, 4), slice(None)),
                 "all of index 5 of axis 1": (slice(None), slice(5, 6)),
                 "a tail: the last 3 of 32 along axis 1": (slice(1, 4), slice(29, None)),
                 "every 16th element from 2": (slice(None), slice(2, None, 16)),
                 "a block: 2..3 × 4..9": (slice(2, 4), slice(4, 10)),
                 "one element": (slice(2, 3), slice(4, 5)), "all elements": (slice(None),) * 2}
        for text, place in cases.items():
            mask = wrong.clone()
            mask[place] = True
            expected = "all of index 2, 18 of axis 1" if "16th" in text else text
            self.assertEqual(pattern_of(mask), expected)
        flat = torch.zeros(64, dtype=torch.bool)
        flat[2::16] = True
        self.assertEqual(pattern_of(flat), "every 16th element from 2")


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        (self.at / "script.py").write_text(SCRIPT, encoding="utf-8")

    def run_command(self, *words):
        return command.main([*words[:-1], str(self.at / "script.py"), *words[-1:]])

    def test_command(self):
        files = [f"--{kind}={self.at / kind}" for kind in ("json", "junit", "html")]
        self.assertEqual(self.run_command(*files, "plain"), 0)
        read = json.loads((self.at / "json").read_text())
        self.assertEqual((read["ok"], read["steps"]), (True, 2))
        self.assertIn("Sequential.1", {row["module"] for row in read["rows"]})
        self.assertTrue((self.at / "html").read_text().startswith("<!doctype html>"))

    def test_failure_of_the_script(self):
        """It is told as the script's, with what was judged until then."""
        for word, code, told in (("value", 5, "ValueError: a value of the script"),
                                 ("file", 5, "OSError: a file of the script"),
                                 ("end", 5, "exit code 9"), ("stop", 130, "an interruption")):
            with self.subTest(word):
                said, judged = io.StringIO(), self.at / f"{word}.json"
                with contextlib.redirect_stderr(said):
                    self.assertEqual(self.run_command(f"--json={judged}", word), code)
                self.assertIn(told, said.getvalue())
                self.assertEqual(json.loads(judged.read_text())["steps"], 1)
                if "Error" in told:
                    self.assertIn("script.py\", line 15", said.getvalue())
                    self.assertNotIn("runpy", said.getvalue())

    def test_failure_of_the_record(self):
        """It is no failure of the script."""
        record = self.at / "record"
        self.assertEqual(self.run_command("--record", str(record), "plain"), 0)
        (record / "0.pt").unlink()
        self.assertEqual(self.run_command("--against", str(record), "plain"), 4)
        (record / "0.pt").write_text("no tensors")
        self.assertEqual(self.run_command("--against", str(record), "plain"), 3)

    def test_two_runs(self):
        record = str(self.at / "record")
        self.assertEqual(self.run_command("--record", record, "plain"), 0)
        self.assertEqual(self.run_command("--against", record, "plain"), 0)
        self.assertEqual(self.run_command("--against", record, "loose"), 1)
        (self.at / "record" / "ops.jsonl").write_text("not json\n")
        self.assertEqual(self.run_command("--against", record, "plain"), 3)
        self.assertEqual(self.run_command("--against", str(self.at / "none"), "plain"), 4)

    def test_first_difference(self):
        """With other rounding nothing differs; with another eps the norm is named."""
        model, x = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64)), torch.randn(32, 64)
        record = str(self.at / "model")
        with keel_judge.record(record, model):
            model(x).square().mean().backward()
        model.zero_grad()
        with keel_judge.against(record, model) as again:
            model(x).square().mean().backward()
        self.assertTrue(again.ok, again.text())
        model.zero_grad()
        model[1].eps = 1e-3
        with keel_judge.against(record, model) as other:
            model(x).square().mean().backward()
        self.assertEqual((other.first.op, other.first.module), ("native_layer_norm", "1"))
        self.assertEqual({d.op for d in other.comparer.differences}, {"native_layer_norm"})
        self.assertEqual(other.comparer.missing, [])

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "no pytest")
    def test_fixture(self):
        (self.at / "test_step.py").write_text(FIXTURE, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "keel_judge.pytest_plugin",
             "-p", "no:cacheprovider", "test_step.py"], cwd=self.at, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([
                str(settings.ROOT), str(settings.ROOT / "tests"), *sys.path])}, check=False)
        self.assertIn("1 failed, 1 passed", done.stdout, done.stdout + done.stderr)
        self.assertIn("times the bound", done.stdout)

    def test_usage(self):
        with self.assertRaises(SystemExit) as end:
            command.main(["--every", "0", "x.py"])
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(command.main([str(self.at / "absent.py")]), 4)


if __name__ == "__main__":
    unittest.main()

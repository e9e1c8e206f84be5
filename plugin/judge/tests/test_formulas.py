"""Right ops may make a wrong formula: what is said of modules that look like norms."""
import json
import pathlib
import tempfile
import unittest

import settings
import torch
from torch import nn

import keel_judge
import norm_modules
from honest import MODELS, Step
from keel_judge import command, writers

SCRIPT = """import torch
from norm_modules import LayerNorm1d
model = torch.nn.Sequential(torch.nn.Linear(8, 16), LayerNorm1d(16), torch.nn.ReLU())
model(torch.randn(4, 8)).square().mean().backward()
"""


def report_of(module, shape, **options):
    model = nn.Sequential(module)
    with keel_judge.judge(model, **options) as report:
        model(torch.randn(shape))
    return report


class Formulas(unittest.TestCase):
    def test_what_modules_compute(self):
        for module, shape, text, differs in norm_modules.CASES:
            with self.subTest(module=type(module).__name__, shape=shape):
                norm, = report_of(module, shape).norms
                self.assertTrue(norm.text().startswith(text), norm.text())
                self.assertEqual(norm.differs, differs)
                self.assertTrue(norm.text().endswith("(in 0)"), norm.text())

    def test_no_norms(self):
        for module in (norm_modules.Swish(), nn.PReLU(), nn.Softmax(1), nn.Linear(12, 12)):
            self.assertEqual(report_of(module, (9, 12)).norms, [])
        self.assertIn("formulas are not checked: right ops may make a wrong one",
                      report_of(nn.ReLU(), (9, 12)).text())

    def test_a_name_is_enough(self):
        """The class says nothing, the name in the model does: ln1 promises a layer norm."""
        model = nn.ModuleDict({"ln1": norm_modules.Plain(), "pre_norm": norm_modules.Plain()})
        with keel_judge.judge(model) as report:
            for part in model.values():
                part(torch.randn(9, 12))
        one, = report.norms  # of one class and one setting
        self.assertEqual((one.norm, one.modules, one.differs),
                         ("rmsnorm", ["ln1", "pre_norm"], "its name says layernorm"))

    def test_networks(self):
        """PyTorch's own norms compute what their names say."""
        for name in MODELS:
            with self.subTest(model=name):
                step = Step(name)
                with keel_judge.judge(step.model, ops=("none",)) as report:
                    step()
                self.assertEqual([n.text() for n in report.differing()], [])
                self.assertTrue(all(n.norm for n in report.norms),
                                [n.text() for n in report.norms])

    def test_summary_and_files(self):
        report = report_of(norm_modules.LayerNorm1d(12), (9, 12))
        self.assertTrue(report.ok)  # each op is right
        self.assertTrue(report.summary().endswith("; not what the name says: LayerNorm1d"))
        self.assertIn("LayerNorm1d: layernorm with eps outside the root", report.text())
        norm, = json.loads(writers.as_json(report))["norms"]
        self.assertEqual(
            (norm["kind"], norm["modules"], norm["claims"], norm["norm"]),
            ("LayerNorm1d", ["0"], "layernorm", "layernorm"))
        self.assertEqual(norm["options"], {"eps": 1e-5, "eps_place": "outside"})
        self.assertIn("eps inside", norm["differs"])
        self.assertIn("LayerNorm1d: layernorm with eps outside", writers.as_html(report))
        self.assertIn("LayerNorm1d: layernorm with eps outside", writers.as_junit(report))

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            script, told = pathlib.Path(folder) / "script.py", pathlib.Path(folder) / "report.json"
            script.write_text(f"import sys\nsys.path.insert(0, {str(settings.ROOT / 'tests')!r})\n"
                              + SCRIPT, encoding="utf-8")
            for words, code, count in (((), 0, 1), (("--strict",), 1, 1), (("--no-norms",), 0, 0)):
                self.assertEqual(command.main([*words, f"--json={told}", str(script)]), code)
                self.assertEqual(len(json.loads(told.read_text())["norms"]), count)

    def test_the_program_stays_as_it_is(self):
        """Parameters, running statistics, random numbers and calls are the program's own."""
        model, calls = nn.Sequential(nn.Linear(4, 12), nn.BatchNorm1d(12)), []
        model[1].register_forward_hook(lambda *unused: calls.append(1))
        torch.manual_seed(3)
        x = torch.randn(9, 4)
        with keel_judge.judge(model):
            model(x)
        mean, drawn, gain = model[1].running_mean.clone(), torch.rand(3), model[1].weight.clone()
        self.assertEqual((int(model[1].num_batches_tracked), len(calls)), (1, 1))
        self.assertTrue(torch.allclose(mean, 0.1 * model[0](x).mean(0)))
        self.assertTrue(torch.equal(gain, torch.ones(12)))
        torch.manual_seed(3)
        torch.randn(9, 4)
        self.assertTrue(torch.equal(drawn, torch.rand(3)))

    def test_limits(self):
        report = report_of(norm_modules.LayerNorm1d(12), (9, 12), seconds=0.0)
        self.assertEqual((report.norms, report.norms_left), ([], 1))
        self.assertIn("1 more kinds of modules: no time", report.text())
        self.assertEqual(report_of(norm_modules.LayerNorm1d(12), (9, 12), norms=False).norms, [])
        report = report_of(norm_modules.LayerNorm1d(12), (9, 12), modules=("other",))
        self.assertEqual((report.norms, report.norms_left), ([], 0))


if __name__ == "__main__":
    unittest.main()

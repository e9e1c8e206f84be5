"""Defects that PyTorch and others had are found, each at its op."""
import unittest

import settings
import torch
import torch.nn.functional as F
from torch import nn

import defects
import keel_judge


def found(defect, model, x):
    with defect, keel_judge.judge(model) as report:
        model(x).square().sum().backward()
    return report


class Defects(unittest.TestCase):
    def check(self, report, op, module):
        self.assertFalse(report.ok)
        self.assertEqual({(f.op, f.module) for f in report.findings}, {(op, module)},
                         report.text())
        return report.findings[0]

    def test_linear_on_mps(self):
        model = nn.Sequential(nn.Linear(12, 7), nn.ReLU())
        finding = self.check(found(defects.Defect(addmm=defects.wrong_from_row_9), model,
                                   torch.randn(16, 12)), "addmm", "0")
        self.assertEqual(finding.pattern, "all of index 8 to 15 of axis 0")

    def test_group_norm_of_onednn(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8))
        finding = self.check(found(defects.Defect(
            native_group_norm_backward=defects.group_norm_dx), model,
            torch.randn(2, 3, 7, 7)), "native_group_norm_backward", "1")
        self.assertEqual((finding.phase, finding.output), ("backward", "output 0"))

    def test_tail_of_quack(self):
        model = nn.Sequential(nn.LayerNorm(769))
        x = torch.randn(5, 769) + 1000
        self.check(found(defects.Defect(native_layer_norm=defects.zeros_in_tail), model, x),
                   "native_layer_norm", "0")
        even = nn.Sequential(nn.LayerNorm(768))
        with keel_judge.judge(even) as report, \
                defects.Defect(native_layer_norm=lambda given, returned: returned):
            even(torch.randn(5, 768) + 1000)
        self.assertTrue(report.ok, report.text())

    def test_running_variance(self):
        model = nn.Sequential(nn.BatchNorm1d(6))
        finding = self.check(found(defects.Defect(
            native_batch_norm=defects.biased_running_variance), model, torch.randn(9, 6)),
            "native_batch_norm", "0")
        self.assertEqual(finding.output, "running_var")

    def test_gain_without_offset(self):
        """Megatron-LM before 6859: forward adds 1 to the gain, backward does not."""
        x = torch.randn(32, 48, requires_grad=True)
        gain, dy = torch.randn(48) * 0.1, torch.randn(32, 48)
        y = F.layer_norm(x, (48,), gain + 1, torch.zeros(48))
        dx, = torch.autograd.grad(F.layer_norm(x, (48,), gain, torch.zeros(48)), x, dy)
        answer = keel_judge.identify(x=x, y=y.detach(), gain=gain, dy=dy, dx=dx)
        self.assertEqual(answer.best.options.get("offset"), 1)
        self.assertEqual(answer.gradient(), "backward ignores the +1 on the gain")
        self.assertGreater(answer.best.gradients["exact"], 1e3)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

"""Custom ops with a declared formula are judged, forward and backward; weight norm, too."""
import contextlib
import unittest

import settings
import torch
import torch.nn.functional as F

import keel_judge
from keel_judge.rules import DECLARED

FAULTS = {}  # what the custom op does wrong now


@torch.library.custom_op("acid_tests::rms_norm", mutates_args=())
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    y = F.rms_norm(x, x.shape[-1:], weight, eps)
    return y * 1.001 if FAULTS.get("forward") else y


@torch.library.custom_op("acid_tests::rms_norm_backward", mutates_args=())
def rms_norm_backward(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
                      eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    rstd = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    xhat, g = x * rstd, dy * weight
    if FAULTS.get("backward"):
        g = g * weight
    return rstd * (g - xhat * (g * xhat).mean(-1, keepdim=True)), (dy * xhat).sum(0)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.eps = inputs[2]


def back(ctx, dy):
    return *rms_norm_backward(dy, *ctx.saved_tensors, ctx.eps), None


rms_norm.register_autograd(back, setup_context=keep)


@contextlib.contextmanager
def declared(**options):
    keel_judge.declare(rms_norm, as_="rmsnorm", backward="acid_tests::rms_norm_backward",
                       **options)
    try:
        yield
    finally:
        DECLARED.clear()
        FAULTS.clear()


def step(dtype=torch.float32):
    torch.manual_seed(0)
    x, gain = (torch.randn(s, dtype=dtype, requires_grad=True) for s in ((9, 33), (33,)))
    with keel_judge.judge(norms=False) as report:
        y = rms_norm(x, gain, 1e-6)
        y.backward(torch.randn_like(y))
    return report


class Declared(unittest.TestCase):
    def test_without_a_declaration_it_is_not_judged(self):
        report = step()
        self.assertIn(("rms_norm", "no rule"), report.not_judged)

    def test_right_ones_are_ok(self):
        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(dtype=dtype), declared():
                report = step(dtype)
                self.assertTrue(report.ok, report.text())
                rows = {row.op for row in report.rows.values()}
                self.assertLessEqual({"rms_norm", "rms_norm_backward"}, rows)
                self.assertFalse(report.not_judged, report.text())

    def test_wrong_ones_are_named(self):
        for fault, op in (("forward", "rms_norm"), ("backward", "rms_norm_backward")):
            with self.subTest(fault), declared():
                FAULTS[fault] = True
                self.assertEqual({f.op for f in step().findings}, {op})

    def test_the_declaration_decides(self):
        with declared(offset=1):
            self.assertFalse(step().ok)

    def test_what_cannot_be_declared(self):
        for op, norm, words in ((3, "rmsnorm", "no op"), ("rms_norm", "rmsnorm", "NAMESPACE"),
                                ("a::b", "squarenorm", "expected one of")):
            with self.assertRaisesRegex(ValueError, words):
                keel_judge.declare(op, as_=norm)


class WeightNorm(unittest.TestCase):
    SHAPES = ((5, 7), 0), ((5, 7), 1), ((6, 4, 3, 3), 0), ((40, 300), 0)

    def run_with(self, shape, dim, dtype, scale):
        torch.manual_seed(0)
        lengths = [n if a == dim else 1 for a, n in enumerate(shape)]
        v = (scale * torch.randn(shape)).to(dtype).requires_grad_()
        g = torch.randn(lengths).to(dtype).requires_grad_()
        with keel_judge.judge(norms=False) as report:
            w = torch._weight_norm(v, g, dim)
            w.backward(torch.ones_like(w))
        return report

    def test_ok(self):
        for shape, dim in self.SHAPES:
            for dtype in (torch.float32, torch.bfloat16):
                for scale in (1, 1e-6, 1e6):
                    with self.subTest(shape=shape, dtype=dtype, scale=scale):
                        report = self.run_with(shape, dim, dtype, scale)
                        self.assertTrue(report.ok, report.text())
                        self.assertFalse(report.not_judged, report.text())

    def test_faults_are_named(self):
        import defects
        for op, place in (("_weight_norm_interface", 0), ("_weight_norm_interface_backward", 0),
                          ("_weight_norm_interface_backward", 1)):
            def broken(given, returned, place=place):
                returned = list(returned)
                returned[place] = returned[place] * 1.0001
                return tuple(returned)
            with self.subTest(op=op), defects.Defect(**{op: broken}):
                report = self.run_with((5, 7), 0, torch.float32, 1)
                self.assertEqual({f.op for f in report.findings}, {op}, report.text())


class Empty(unittest.TestCase):
    def test_group_norm_of_no_samples(self):
        x = torch.zeros(0, 6, 5, requires_grad=True)
        gain, bias = torch.ones(6, requires_grad=True), torch.zeros(6, requires_grad=True)
        with keel_judge.judge(norms=False) as report:
            F.group_norm(x, 2, gain, bias).sum().backward()
        self.assertTrue(report.ok and not report.not_judged, report.text())


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

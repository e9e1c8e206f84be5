"""The bounds themselves: numbers worked out by hand from docs/numerics.md."""
import math
import unittest

import settings
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import keel_judge
from keel_judge.measure import Expected, measure
from keel_judge.rounding import EPS, TINY, Number, constant, exact, sum_error
from keel_judge.rules import PASSED, RULES

ONE = torch.ones(1, dtype=torch.float64)


def share(got, value, error, dtype=torch.float32):
    """The error of a result as a share of its bound."""
    result = torch.tensor([got], dtype=dtype)
    expected = Expected(torch.tensor([value], dtype=torch.float64), torch.tensor([error]).double())
    return measure(result, expected, 4)


class Bounds(unittest.TestCase):
    def test_sums(self):
        """100 terms of random signs, sizes 80, squares 100, sum 3; then 10,000 equal terms of 1."""
        e = sum_error(100, 80 * ONE, 100 * ONE, 3 * ONE)
        self.assertAlmostEqual(float(e.largest) / EPS, 8 * 10 * 80 + 2 * 80, 6)
        self.assertAlmostEqual(float(e.usual) / EPS, 8 * 10 * 10 + 2 * 80, 6)
        self.assertAlmostEqual(float(e.deviation) / EPS, 10 * 10 + 80 / 4, 6)
        e = sum_error(10000, 1e4 * ONE, 1e4 * ONE, 1e4 * ONE)
        drift = 5000 * (10000 - 4 * 100)
        self.assertAlmostEqual(float(e.largest) / EPS / (8e6 + drift + 2e4), 1, 9)
        e = sum_error(4, 8 * ONE, 16 * ONE, 0 * ONE)  # short sums: k A
        self.assertAlmostEqual(float(e.largest) / EPS, 4 * 8 + 2 * 8, 6)
        self.assertEqual(float(sum_error(7, 0 * ONE, 0 * ONE, 0 * ONE).largest), 7 * TINY)

    def test_numbers(self):
        product = exact(3.0) * Number(torch.tensor(2.0).double(), 0.5)
        self.assertAlmostEqual(float(product.error), 1.5 + EPS * 7.5, 12)
        quotient = exact(1.0) / Number(torch.tensor(0.5).double(), 0.5)
        self.assertTrue(math.isinf(float(quotient.error)))
        self.assertAlmostEqual(float(constant(0.1).error), 0.1 * EPS, 15)
        root = Number(torch.tensor(4.0).double(), 1.0).sqrt()
        self.assertAlmostEqual(float(root.error), 2 - math.sqrt(3), 6)

    def test_measure(self):
        self.assertFalse(bool(share(1.0, 1.0 + 1e-7, 2e-7).wrong.any()))
        self.assertTrue(bool(share(1.0, 1.0 + 3e-7, 2e-7).wrong.any()))
        # 16 bits round once more: 2^-8 of the value in bf16.
        self.assertFalse(bool(share(1.0, 1.0038, 0.0, torch.bfloat16).wrong.any()))
        self.assertTrue(bool(share(1.0, 1.0042, 0.0, torch.bfloat16).wrong.any()))
        # Beyond the floats: the largest number or infinity, of the same sign; NaN for NaN.
        self.assertFalse(bool(share(math.inf, 1e39, 0.0).wrong.any()))
        self.assertTrue(bool(share(-math.inf, 1e39, 0.0).wrong.any()))
        self.assertTrue(bool(share(math.nan, 1.0, 1.0).wrong.any()))
        self.assertFalse(bool(share(math.nan, math.nan, 1.0).wrong.any()))
        self.assertFalse(bool(share(math.inf, 3.4e38, 1e37).wrong.any()))

    def test_unknown_bounds(self):
        """An infinite bound is not judged, and hides nothing."""
        for got in (math.nan, math.inf, 2.0):
            measured = share(got, 1.0, math.inf)
            self.assertEqual((bool(measured.wrong.any()), measured.unjudged), (False, 1))
        self.assertEqual(share(1.0, 1.0, math.inf).unjudged, 0)

    def test_common_factor(self):
        """A factor of 1 + 1e-5 in a product of 4,096 terms is far below T, and is seen."""
        torch.manual_seed(0)
        a, b = torch.randn(16, 4096), torch.randn(4096, 16)
        with keel_judge.judge() as honest:
            a @ b

        class Scaled(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {})) * (1 + 1e-5)
        with Scaled(), keel_judge.judge() as scaled:
            a @ b
        self.assertEqual((len(honest.suspect), len(scaled.suspect)), (0, 1))
        self.assertEqual(scaled.suspect[0].doubt, "all off by a common factor")

    def test_exact_ops(self):
        """Copies and choices have no rounding; ties may be broken any way."""
        x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])
        with keel_judge.judge() as report:
            x.max(1)
            x.argmax(1)
            x.sort(1)
            x.topk(2, 1)
            torch.cat([x, x]).clone()
            x > 1.5
            x.to(torch.bfloat16)
            x.masked_fill(x > 2, 0.1)
            nn.functional.max_pool2d(x.reshape(1, 1, 2, 3), 2, 1)
        self.assertTrue(report.ok, report.text())
        self.assertEqual(report.not_judged.total(), 0, report.text())

    def test_inputs_are_copied(self):
        """Ops in place, with out=, on lists, and on memory that the next op changes."""
        x, y = torch.randn(8, 8), torch.randn(8, 8)
        with keel_judge.judge() as report:
            x.mul_(3).add_(y, alpha=0.3)
            torch.addcmul(x, y, y, value=0.7, out=y)
            torch._foreach_add_([x, y], [y.clone(), x.clone()], alpha=2)
            torch._foreach_addcdiv_([x], [y], [x.abs() + 1], value=0.1)
            torch._foreach_norm([x, y])
            x.t().copy_(y)
            x.add_(x)
        self.assertTrue(report.ok, report.text())
        self.assertEqual(report.not_judged.total(), 0, report.text())

    def test_tensor_classes(self):
        """Ops of a class of tensors are judged by what that class runs."""
        from torch.testing._internal.two_tensor import TwoTensor
        pair = TwoTensor(torch.randn(4, 4), torch.randn(4, 4))
        with keel_judge.judge() as report:
            pair @ pair
        self.assertEqual(report.rows["mm", "", "forward"].calls, 2, report.text())

    def test_random_ops(self):
        with keel_judge.judge() as report:
            nn.functional.dropout(torch.randn(100), 0.3)
            torch.rand(5).uniform_(2, 3)
            torch.randn(5).bernoulli_(0.5)
            torch.randperm(5)
        self.assertTrue(report.ok, report.text())

    def test_table(self):
        self.assertGreater(len(RULES), 300)
        self.assertEqual(set(RULES) & PASSED, set())


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

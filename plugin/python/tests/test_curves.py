"""DyT, Derf and SeeDNorm of keel_norms.torch beside their formulas."""
import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import functional  # noqa: E402


def dyt(x, weight, bias, alpha):
    return weight * torch.tanh(alpha * x) + bias


def derf(x, weight, bias, alpha, shift):
    return weight * torch.erf(alpha * x + shift) + bias


def seed(x, gain, a, b):
    score, mean = (x * b).sum(-1, keepdim=True), x.square().mean(-1, keepdim=True)
    return (torch.tanh(score) * a + gain) * x * torch.rsqrt(mean + 1e-6)


class Curves(unittest.TestCase):
    def test_steps(self):
        torch.manual_seed(4)
        for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-12)):
            for make, formula, shape in ((knn.DyT, dyt, (7, 12)), (knn.Derf, derf, (7, 12)),
                                         (knn.SeeDNorm, seed, 12)):
                norm = make(shape, dtype=dtype)
                for parameter in norm.parameters():
                    nn.init.normal_(parameter, 0.3, 0.3)
                x, dy = (torch.randn(5, 7, 12, dtype=dtype) for _ in range(2))
                x = (3 * x).requires_grad_()
                given, found = [x, *norm.parameters()], []
                for y in (norm(x), formula(*given)):
                    found.append([y, *torch.autograd.grad(y, given, dy)])
                for got, wanted in zip(*found, strict=True):
                    scale = max(1.0, float(wanted.detach().abs().max()))
                    torch.testing.assert_close(got, wanted, rtol=0, atol=tolerance * scale)

    def test_first_values(self):
        norm = knn.Derf(3, alpha_init=1.0, shift_init=-0.25)
        for name, first in (("alpha", 1.0), ("shift", -0.25), ("weight", 1.0), ("bias", 0.0)):
            self.assertTrue((getattr(norm, name) == first).all(), name)
        self.assertEqual(float(knn.DyT(3).alpha.detach()), 0.5)
        self.assertEqual(list(knn.Derf(3).state_dict()), ["weight", "bias", "alpha", "shift"])
        self.assertEqual(set(knn.DyT(3, elementwise_affine=False).state_dict()), {"alpha"})

    def test_narrow_x(self):
        norm, x = knn.DyT(8).bfloat16(), torch.randn(6, 8).bfloat16()
        y = norm(x)
        self.assertEqual(y.dtype, torch.bfloat16)
        torch.testing.assert_close(y, torch.tanh(0.5 * x.float()).bfloat16())

    def test_functions_without_parameters_of_a_row(self):
        x, alpha = torch.randn(4, 6), torch.tensor([0.75])
        torch.testing.assert_close(functional.dyt(x, alpha), torch.tanh(0.75 * x))
        torch.testing.assert_close(functional.derf(x, alpha), torch.erf(0.75 * x))
        with self.assertRaisesRegex(KeelError, r"alpha: expected \(1\), got \(6\)"):
            functional.dyt(x, torch.ones(6))


if __name__ == "__main__":
    unittest.main()

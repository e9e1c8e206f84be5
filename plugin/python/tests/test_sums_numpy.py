"""A residual sum and the norm of it in keel_norms.numpy: the bits of the two ops apart."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import numpy as kn  # noqa: E402

NORMS = ("layer_norm", "rms_norm")
RANDOM = np.random.default_rng(6)


def drawn(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


class Sums(unittest.TestCase):
    def same(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        np.testing.assert_array_equal(got, expected)

    def check(self, norm, affine, has_dsum, dtype):
        x, residual, dy, dsum = (drawn(5, 7, 12, dtype=dtype) for _ in range(4))
        step = getattr(kn, "add_" + norm)(x, residual, *affine, eps=1e-5)
        plain = getattr(kn, norm)(x + residual, *affine, eps=1e-5)
        self.same(step.sum, x + residual)
        self.same(step.y, plain.y)
        back, expected = step.backward(dy, dsum if has_dsum else None), plain.backward(dy)
        self.same(back.dx, expected.dx + dsum if has_dsum else expected.dx)
        for name in ("dgain", "dbias"):
            got, wanted = getattr(back, name), getattr(expected, name)
            self.assertEqual(got is None, wanted is None)
            if got is not None:
                self.same(got, wanted)

    def test_the_bits_of_the_two_ops(self):
        for norm in NORMS:
            for dtype in (np.float32, np.float64):
                gain, bias = drawn(12, dtype=dtype), drawn(12, dtype=dtype)
                for affine in ((), (gain,), (gain, bias), (None, bias)):
                    for has_dsum in (True, False):
                        with self.subTest(norm=norm, dtype=dtype, count=len(affine)):
                            self.check(norm, affine, has_dsum, dtype)

    def test_refusals(self):
        x = drawn(4, 6)
        for kind, words, call in (
                (TypeError, "residual: expected an array, got None",
                 lambda: kn.add_layer_norm(x, None)),
                (KeelError, r"\[add_layer_norm\] residual: expected f32\(4, 6\), as x is",
                 lambda: kn.add_layer_norm(x, x[0])),
                (KeelError, r"\[add_rms_norm_backward\] dsum: expected f32\(4, 6\), as sum is",
                 lambda: kn.add_rms_norm(x, x).backward(x, x[0])),
                (KeelError, "epz", lambda: kn.add_rms_norm(x, x, epz=1))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()

    def test_help_has_formula_and_options(self):
        for words in ("s = x + residual", "eps=1e-05", "unbiased=false"):
            self.assertIn(words, kn.add_layer_norm.__doc__)


if __name__ == "__main__":
    unittest.main()

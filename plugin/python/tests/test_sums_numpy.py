"""A residual sum and the norm of it in keel_norms.numpy: the bits of the two ops apart. A modulated
layer norm against its formula."""
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


class Modulated(unittest.TestCase):
    def given(self, shape, dtype):
        rows = shape[0], shape[-1]
        return drawn(*shape, dtype=dtype), drawn(*rows, dtype=dtype), drawn(*rows, dtype=dtype)

    def formula(self, x, scale, shift, eps):
        """y in float64, sequence by sequence."""
        x, scale, shift = (value.astype(np.float64) for value in (x, scale, shift))
        centred = x - x.mean(-1, keepdims=True)
        normed = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + eps)
        return np.stack([n * (1 + factor) + term for n, factor, term in zip(normed, scale, shift)])

    def test_values(self):
        for dtype, bound in ((np.float32, 1e-5), (np.float64, 1e-12)):
            for shape in ((3, 5, 12), (3, 2, 4, 12)):
                for eps in (1e-3, 1e-6):
                    x, scale, shift = self.given(shape, dtype)
                    x *= dtype(np.sqrt(eps))  # a variance like the eps
                    options = {"eps": eps} if eps > 1e-6 else {}
                    y = kn.modulated_layer_norm(x, scale, shift, **options).y
                    self.assertEqual(y.dtype, dtype)
                    np.testing.assert_allclose(y, self.formula(x, scale, shift, eps), bound, bound)

    def test_gradients_are_central_differences(self):
        for shape in ((2, 3, 6), (2, 2, 2, 6)):
            given = self.given(shape, np.float64)
            dy, step = drawn(*shape, dtype=np.float64), 1e-6
            back = kn.modulated_layer_norm(*given, eps=1e-3).backward(dy)
            for place, gradient in enumerate((back.dx, back.dscale, back.dshift)):
                self.assertEqual(gradient.shape, given[place].shape)
                for index in np.ndindex(gradient.shape):
                    sides = []
                    for move in (step, -step):
                        moved = [value.copy() for value in given]
                        moved[place][index] += move
                        sides.append((self.formula(*moved, 1e-3) * dy).sum())
                    self.assertAlmostEqual(gradient[index], (sides[0] - sides[1]) / (2 * step), 7)

    def test_gradients_in_float32_and_an_empty_batch(self):
        x, scale, shift = self.given((3, 5, 12), np.float32)
        dy = drawn(3, 5, 12)
        backs = [kn.modulated_layer_norm(*(value.astype(dtype) for value in (x, scale, shift)))
                 .backward(dy.astype(dtype)) for dtype in (np.float32, np.float64)]
        for name in ("dx", "dscale", "dshift"):
            got, expected = (getattr(back, name) for back in backs)
            self.assertEqual(got.dtype, np.float32)
            np.testing.assert_allclose(got, expected, 2e-5, 2e-5)
        many = drawn(1, 10**5, 2)
        back = kn.modulated_layer_norm(many, scale[:1, :2], shift[:1, :2]).backward(
            np.full_like(many, 0.1))
        np.testing.assert_allclose(back.dshift, 10**5 * np.float64(np.float32(0.1)), 1e-7)
        none = kn.modulated_layer_norm(x[:0], scale[:0], shift[:0])
        self.assertEqual(none.backward(dy[:0]).dscale.shape, (0, 12))

    def test_refusals(self):
        x, rows = drawn(3, 5, 12), drawn(3, 12)
        for kind, words, call in (
                (KeelError, r"^\[modulated_layer_norm\] x: expected \(batch, ..., width\), got "
                 r"\(3, 12\)", lambda: kn.modulated_layer_norm(rows, rows, rows)),
                (KeelError, r"^\[modulated_layer_norm\] scale: expected \(3, 12\), a row for each "
                 r"sequence of x, got \(2, 12\)",
                 lambda: kn.modulated_layer_norm(x, rows[:2], rows)),
                (KeelError, r"shift: expected \(3, 12\)",
                 lambda: kn.modulated_layer_norm(x, rows, rows[0])),
                (TypeError, "shift: expected an array, got None",
                 lambda: kn.modulated_layer_norm(x, rows, None)),
                (TypeError, "scale: expected float32, as x is, got float64",
                 lambda: kn.modulated_layer_norm(x, rows.astype(float), rows)),
                (ValueError, r"dy: expected \(3, 5, 12\), got \(5, 12\)",
                 lambda: kn.modulated_layer_norm(x, rows, rows).backward(x[0]))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()


if __name__ == "__main__":
    unittest.main()

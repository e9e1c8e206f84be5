"""A residual sum and the norm of it in keel_norms.jax: the bits of keel_norms.numpy. A modulated
layer norm: the numbers of keel_norms.numpy."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    print(f"test_sums_jax: skipped: {error}")
    sys.exit(77)
from keel_norms import KeelError  # noqa: E402
from keel_norms import jax as kj  # noqa: E402
from keel_norms import numpy as kn  # noqa: E402

NORMS = ("add_layer_norm", "add_rms_norm")
RANDOM = np.random.default_rng(6)


def drawn(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


class Sums(unittest.TestCase):
    def same(self, got, expected):
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))

    def test_the_bits_of_numpy(self):
        for name in NORMS:
            for affine in ((), (drawn(12),), (drawn(12), drawn(12))):
                x, residual, dy, dsum = (drawn(5, 7, 12) for _ in range(4))
                step = getattr(kn, name)(x, residual, *affine)
                back = step.backward(dy, dsum)
                with self.subTest(norm=name, count=len(affine)):
                    run = jax.jit(getattr(kj, name))
                    self.same(run(x, residual, *affine), (step.y, step.sum))
                    _, pull = jax.vjp(getattr(kj, name), x, residual, *affine)
                    wanted = [v for v in (back.dgain, back.dbias) if v is not None]
                    self.same(pull((jnp.asarray(dy), jnp.asarray(dsum))),
                              [back.dx, back.dx, *wanted])

    def test_narrow_types(self):
        x, residual = (jnp.asarray(drawn(5, 12), jnp.bfloat16) for _ in range(2))
        y, total = kj.add_layer_norm(x, residual)
        self.assertEqual((y.dtype, total.dtype), (jnp.bfloat16, jnp.bfloat16))
        self.same((y, total), (kj.layer_norm(x + residual), x + residual))

    def test_vmap(self):
        x, residual = drawn(3, 5, 12), drawn(3, 5, 12)
        got = jax.vmap(kj.add_rms_norm)(x, residual)
        self.same(got, [np.stack(parts) for parts in zip(*map(kj.add_rms_norm, x, residual))])

    def test_refusals(self):
        x = drawn(4, 6)
        with self.assertRaisesRegex(KeelError, r"\[add_rms_norm\] residual: expected f32\(4, 6\)"):
            kj.add_rms_norm(x, x[0])


class Modulated(unittest.TestCase):
    def given(self, *shape):
        return drawn(*shape), *(drawn(shape[0], shape[-1]) for _ in range(2))

    def close(self, got, expected):
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), 2e-6, 2e-6)

    def test_the_numbers_of_numpy(self):
        for shape in ((3, 5, 12), (3, 2, 4, 12)):
            for options in ({}, {"eps": 1e-2}):
                given, dy = self.given(*shape), drawn(*shape)
                step = kn.modulated_layer_norm(*given, **options)
                back = step.backward(dy)

                def run(*values):
                    return kj.modulated_layer_norm(*values, **options)

                for function in (run, jax.jit(run)):
                    y, pull = jax.vjp(function, *given)
                    self.close([y], [step.y])
                    self.close(pull(jnp.asarray(dy)), [back.dx, back.dscale, back.dshift])

    def test_narrow_types_are_rounded_once(self):
        x, scale, shift = (jnp.asarray(value, jnp.bfloat16) for value in self.given(3, 5, 12))
        # Nothing remains of 1 + scale but 1, if it is added in bfloat16.
        for factor in (scale, jnp.full_like(scale, 2.0**-9)):
            y = kj.modulated_layer_norm(x, factor, shift)
            self.assertEqual(y.dtype, jnp.bfloat16)
            wide = kj.modulated_layer_norm(*(value.astype(jnp.float32)
                                             for value in (x, factor, shift)))
            self.assertTrue(bool((y == wide.astype(jnp.bfloat16)).all()))

    def test_vmap(self):
        given = [np.stack(parts) for parts in zip(*(self.given(3, 5, 12) for _ in range(2)))]
        self.close(jax.vmap(kj.modulated_layer_norm)(*given),
                   [kj.modulated_layer_norm(*parts) for parts in zip(*given)])

    def test_refusals(self):
        x, scale, shift = self.given(3, 5, 12)
        for words, arguments in (
                (r"^\[modulated_layer_norm\] x: expected \(batch, ..., width\), got \(3, 12\)",
                 (scale, scale, shift)),
                (r"scale: expected \(3, 12\), a row for each sequence of x, got \(12,\)",
                 (x, scale[0], shift)),
                (r"shift: expected \(3, 12\), .* got \(2, 12\)", (x, scale, shift[:2]))):
            with self.assertRaisesRegex(KeelError, words):
                kj.modulated_layer_norm(*arguments)


if __name__ == "__main__":
    unittest.main()

"""Masks and counters of a user in keel_norms.jax: converted by value, or refused with words."""
import pathlib
import sys
import unittest

import jax
import jax.numpy as jnp
import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]),
                str(pathlib.Path(__file__).resolve().parent)]
import mask_cases  # noqa: E402
from keel_norms import jax as kj  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402

X = np.random.default_rng(1).standard_normal((3, 5, 4)).astype(np.float32)
MASKED = [norm for norm, facts in NORMS.items() if facts.is_column] + ["instance_norm"]


def y_of(norm, mask):
    y = getattr(kj, norm)(X, mask=mask)
    return np.asarray(y[0] if NORMS[norm].states else y)


class Masks(unittest.TestCase):
    def test_not_zero_means_not_padding(self):
        masks = [*mask_cases.good(), ("bfloat16", jnp.asarray(0.5 * mask_cases.KEPT, jnp.bfloat16)),
                 ("array of JAX", jnp.asarray(256 * mask_cases.KEPT))]
        for norm in MASKED:
            expected = y_of(norm, mask_cases.KEPT)
            for name, mask in masks:
                with self.subTest(norm=norm, mask=name):
                    np.testing.assert_array_equal(y_of(norm, mask), expected)

    def test_refusals(self):
        for norm in MASKED:
            for kind, words, mask in mask_cases.bad():
                with self.subTest(norm=norm, words=words), self.assertRaises(kind) as caught:
                    y_of(norm, mask)
                self.assertIn(words, str(caught.exception))

    def test_within_jit_types_and_shapes_are_looked_at(self):
        run = jax.jit(lambda mask: kj.pn_v(X, mask=mask)[0])
        expected = y_of("pn_v", mask_cases.KEPT)
        for mask in (mask_cases.KEPT, 0.5 * mask_cases.KEPT, 256 * mask_cases.KEPT,
                     np.where(mask_cases.KEPT, -np.inf, 0)):
            np.testing.assert_allclose(run(jnp.asarray(mask)), expected, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, r"mask: expected \(3, 5\)"):
            run(jnp.asarray(mask_cases.KEPT.T))
        with self.assertRaisesRegex(TypeError, "booleans or real numbers"):
            run(jnp.asarray(mask_cases.KEPT, jnp.complex64))


class Counters(unittest.TestCase):
    def test_counters_are_not_cut(self):
        state = kj.first_state("power_norm", 4)
        expected, _ = kj.power_norm(X, state={**state, "step": np.int32(3)}, warmup=3)
        for step in (3, np.int64(3), jnp.asarray(3)):
            y, _ = kj.power_norm(X, state={**state, "step": step}, warmup=3)
            np.testing.assert_array_equal(y, expected)
        for step, kind, words in ((2**32, ValueError, "step: expected 0 to 2147483646"),
                                  (-1, ValueError, "got -1"), (2.7, TypeError, "got float64")):
            with self.assertRaisesRegex(kind, words):
                kj.power_norm(X, state={**state, "step": step})


if __name__ == "__main__":
    unittest.main()

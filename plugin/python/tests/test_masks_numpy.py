"""Masks and states of a user in keel_norms.numpy: converted by value, or refused with words."""
import pathlib
import sys
import unittest

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]),
                str(pathlib.Path(__file__).resolve().parent)]
import mask_cases  # noqa: E402
from keel_norms import KeelError  # noqa: E402
from keel_norms import numpy as kn  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402

X = np.random.default_rng(1).standard_normal((3, 5, 4)).astype(np.float32)
MASKED = [norm for norm, facts in NORMS.items() if facts.is_column] + ["instance_norm"]


class Masks(unittest.TestCase):
    def test_not_zero_means_not_padding(self):
        for norm in MASKED:
            run = getattr(kn, norm)
            expected = run(X, mask=mask_cases.KEPT.astype(np.uint8))
            dx = expected.backward(X).dx
            self.assertFalse(np.array_equal(expected.y, run(X).y))
            for name, mask in mask_cases.good():
                with self.subTest(norm=norm, mask=name):
                    step = run(X, mask=mask)
                    np.testing.assert_array_equal(step.y, expected.y)
                    np.testing.assert_array_equal(step.backward(X).dx, dx)

    def test_lists_views_and_other_byte_orders(self):
        expected = kn.pn_v(X, mask=mask_cases.KEPT).y
        wide = np.zeros((3, 10), np.int64)
        wide[:, ::2] = 2**40 * mask_cases.KEPT
        for mask in (mask_cases.KEPT.tolist(), wide[:, ::2],
                     (256 * mask_cases.KEPT).astype(">i8"), np.asfortranarray(mask_cases.KEPT)):
            np.testing.assert_array_equal(kn.pn_v(X, mask=mask).y, expected)

    def test_refusals(self):
        for norm in MASKED:
            for kind, words, mask in mask_cases.bad():
                with self.subTest(norm=norm, words=words), self.assertRaises(kind) as caught:
                    getattr(kn, norm)(X, mask=mask)
                self.assertIn(words, str(caught.exception))
                self.assertIn(f"[{norm}] mask: ", str(caught.exception))

    def test_words_are_no_mask(self):
        for mask in (mask_cases.KEPT.astype(str), mask_cases.KEPT.astype(object), "mask"):
            with self.assertRaisesRegex(TypeError, "mask: expected booleans or real numbers"):
                kn.batch_norm(X, mask=mask)


class States(unittest.TestCase):
    def test_counters_are_not_cut(self):
        state = kn.first_state("power_norm", 4)
        expected = kn.power_norm(X, state={**state, "step": np.int32(3)}, warmup=3).y
        self.assertFalse(np.array_equal(expected, kn.power_norm(X, state=state, warmup=3).y))
        for step in (3, np.int64(3), np.array(3, np.uint8), np.uint64(3)):
            y = kn.power_norm(X, state={**state, "step": step}, warmup=3).y
            np.testing.assert_array_equal(y, expected)
        for step, kind, words in (
                (2**32, KeelError, "step: expected 0 to 2147483646, got 4294967296"),
                (2**31 - 1, KeelError, "got 2147483647"), (-1, KeelError, "got -1"),
                (2.7, TypeError, "step: expected an integer, got float64"),
                (True, TypeError, "got bool"),
                (np.zeros(2, np.int32), KeelError, "[power_norm] step: expected (), got (2)")):
            with self.subTest(step=step), self.assertRaises(kind) as caught:
                kn.power_norm(X, state={**state, "step": step})
            self.assertIn(words, str(caught.exception))

    def test_states_of_other_types_and_shapes(self):
        state = kn.first_state("batch_norm", 4)
        for value, kind, words in ((np.zeros(5, np.float32), KeelError, "expected (4), got (5)"),
                                   (np.zeros(4, np.int64), TypeError, "running_mean: expected f"),
                                   (np.zeros(4), KeelError, "running_mean: the kernel"),
                                   (np.zeros(4, np.float16), TypeError, "got float16")):
            with self.assertRaises(kind) as caught:
                kn.batch_norm(X, state={**state, "running_mean": value})
            self.assertIn(words, str(caught.exception))


class Options(unittest.TestCase):
    def test_values_arrive_or_are_refused(self):
        expected = kn.group_norm(X[0], groups=2, eps=0.25).y
        for groups in (np.int64(2), np.uint8(2), np.array(2)):
            y = kn.group_norm(X[0], groups=groups, eps=np.float32(0.25)).y
            np.testing.assert_array_equal(y, expected)
        for groups, kind in ((2.5, KeelError), (2**64 + 2, KeelError), ("2 eps=1", KeelError),
                             ("", KeelError), (None, TypeError), ([2], TypeError),
                             (np.array([2]), TypeError), (True, KeelError), (0, KeelError)):
            with self.subTest(groups=groups), self.assertRaisesRegex(kind, "groups"):
                kn.group_norm(X[0], groups=groups)

    def test_call_reads_views_and_refuses_types(self):
        wide = np.zeros((6, 8), np.float32)
        wide[:, ::2] = X.reshape(15, 4)[:6]
        y = kn.call("layer_norm", [wide[:, ::2], None, None])[0]
        np.testing.assert_array_equal(y, kn.layer_norm(wide[:, ::2]).y)
        with self.assertRaisesRegex(TypeError, "mask: expected .*uint8.*, got int64"):
            kn.call("pn_v", [X[0], None, None, np.ones(4, np.float32), np.ones(5, np.int64), None])


if __name__ == "__main__":
    unittest.main()

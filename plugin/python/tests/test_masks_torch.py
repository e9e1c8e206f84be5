"""Masks and counters of a user in keel_norms.torch: converted by value, or refused with words."""
import copy
import pathlib
import sys
import unittest

import numpy as np
import torch

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]),
                str(pathlib.Path(__file__).resolve().parent)]
import mask_cases  # noqa: E402
from keel_norms import KeelError  # noqa: E402
from keel_norms import torch as knn  # noqa: E402

# How a norm that takes a mask is made, and whether its channels are axis 1.
MASKED = {"PowerNorm": False, "PNV": False, "MABN": False, "UnifiedNorm": False,
          "BatchRenorm1d": False,
          "SyncPowerNorm": False, "SyncPNV": False, "BatchNorm1d": True, "SyncBatchNorm": True}
KEPT = torch.from_numpy(mask_cases.KEPT)


def narrow_masks():
    """Masks of types that NumPy does not have."""
    for dtype in (torch.bfloat16, torch.float8_e5m2):
        yield str(dtype), (0.5 * KEPT).to(dtype)


class Masks(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.rows = torch.randn(3, 5, 4)

    def each(self):
        """A module, and x and y as it has them, in a subtest of their own."""
        for name, is_first in MASKED.items():
            def run(norm, mask, is_first=is_first):
                x = self.rows.transpose(1, 2) if is_first else self.rows
                x = x.detach().requires_grad_()
                y = norm(x, mask)
                y.square().sum().backward()
                return [y.detach(), x.grad, *norm.state_dict().values()]

            with self.subTest(norm=name):
                self.check(getattr(knn, name)(4), run)

    def test_not_zero_means_not_padding(self):
        masks = [(name, torch.from_numpy(mask)) for name, mask in mask_cases.good()]

        def check(norm, run):
            expected = run(copy.deepcopy(norm), KEPT)
            self.assertFalse(torch.equal(expected[0], run(copy.deepcopy(norm), None)[0]))
            for name, mask in (*masks, *narrow_masks()):
                for given in (mask, mask.t().contiguous().t()):
                    for g, e in zip(run(copy.deepcopy(norm), given), expected):
                        self.assertTrue(torch.equal(g, e), name)

        self.check = check
        self.each()

    def test_refusals(self):
        def check(norm, run):
            for kind, words, mask in mask_cases.bad():
                before = copy.deepcopy(norm.state_dict())
                with self.subTest(words=words), self.assertRaises(kind) as caught:
                    run(norm, torch.from_numpy(mask))
                self.assertIn(words, str(caught.exception))
                for name, value in norm.state_dict().items():
                    self.assertTrue(torch.equal(value, before[name]), name)

        self.check = check
        self.each()

    def test_what_is_no_tensor(self):
        for mask in (mask_cases.KEPT, mask_cases.KEPT.tolist()):
            with self.assertRaisesRegex(TypeError, "mask: expected a tensor, got (ndarray|list)"):
                knn.PowerNorm(4)(self.rows, mask)

    def test_images_have_no_mask(self):
        for norm in (knn.PowerNorm(4), knn.BatchNorm2d(4), knn.SyncBatchNorm(4)):
            with self.assertRaisesRegex(KeelError, "mask: expected none .*images"):
                norm(torch.randn(2, 4, 3, 3), torch.ones(2, 3, 3))

    def test_compiled_masks_of_all_types(self):
        """Values cannot be looked at within a graph: not zero counts, NaN and infinities, too."""
        norm = knn.PowerNorm(4)
        run = torch.compile(copy.deepcopy(norm), backend="aot_eager", fullgraph=True)
        expected = copy.deepcopy(norm)(self.rows, KEPT)
        for mask in (256 * KEPT, 0.5 * KEPT, torch.where(KEPT, float("-inf"), 0.0)):
            got = copy.deepcopy(norm)
            got = torch.compile(got, backend="aot_eager", fullgraph=True)(self.rows, mask)
            self.assertTrue(torch.equal(got, expected))
        self.assertTrue(torch.equal(run(self.rows, KEPT), expected))

    def test_an_empty_mask(self):
        norm = knn.PowerNorm(4)
        self.assertEqual(norm(torch.zeros(0, 5, 4), torch.zeros(0, 5)).shape, (0, 5, 4))


class Counters(unittest.TestCase):
    MAKES = (knn.PowerNorm, knn.MABN, knn.BatchRenorm1d, knn.SyncPowerNorm)

    def load(self, make, value, **options):
        norm = make(4)
        state = {**norm.state_dict(), "num_batches_tracked": value}
        model = torch.nn.Sequential(norm)
        model.load_state_dict({f"0.{name}": v for name, v in state.items()}, **options)
        return norm

    def test_counters_that_fit(self):
        for make in self.MAKES:
            for dtype in (torch.int64, torch.int32, torch.uint8):
                for assign in (False, True):
                    norm = self.load(make, torch.tensor(7, dtype=dtype), assign=assign)
                    norm(torch.randn(6, 4)).sum().backward()
                    self.assertEqual(int(norm.num_batches_tracked), 8)

    def test_counters_that_would_be_cut(self):
        for make in self.MAKES:
            for value, words in ((2**32, "expected 0 to 2147483646, got 4294967296"),
                                 (-1, "got -1"), (2.5, "expected an integer, got torch.float32"),
                                 (True, "got torch.bool")):
                with self.assertRaisesRegex(RuntimeError, "0.num_batches_tracked: .*" + words):
                    self.load(make, torch.tensor(value))

    def test_ops_say_what_they_take(self):
        x, one = torch.randn(5, 4), torch.ones(4)
        for mask in (torch.ones(5), torch.ones(5, dtype=torch.int64)):
            with self.assertRaisesRegex((TypeError, KeelError), "mask: expected u(int)?8"):
                knn._ops.call("pn_v", [x, None, None, one, mask, None], "")


if __name__ == "__main__":
    np.seterr(all="raise")
    unittest.main()

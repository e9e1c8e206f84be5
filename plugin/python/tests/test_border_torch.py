"""Wrong arguments of keel_norms.torch are refused in words that say what was expected, and spoil no
later call."""
import pathlib
import sys
import unittest

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import functional  # noqa: E402

X = torch.randn(4, 5, 6)
WRONG = [np.ones((4, 6), np.float32), [[1.0] * 6], None]


class Border(unittest.TestCase):
    def refused(self, words, call, *arguments, **options):
        with self.assertRaisesRegex((KeelError, TypeError), words) as caught:
            call(*arguments, **options)
        self.assertNotIsInstance(caught.exception, AttributeError)

    def test_a_wrong_option_spoils_no_right_one(self):
        """Python's 2, 2.0 and True, 1 are equal, and keel's texts of them are not."""
        for make, wrong, right in ((lambda v: knn.GroupScaling(v, 6), 3.0, 3),
                                   (lambda v: knn.PowerNorm(6, heads=v), 3.0, 3),
                                   (lambda v: knn.PowerNorm(6, heads=v), True, 1),
                                   (lambda v: knn.PowerNorm(6, warmup=v), 7.0, 7),
                                   (lambda v: knn.MABN(6, warmup=v), 7.0, 7)):
            with self.subTest(wrong=wrong):
                self.refused("expected a", lambda: make(wrong)(X))
                self.assertEqual(make(right)(X).shape, X.shape)
                with torch.no_grad():
                    self.assertEqual(make(right)(X).shape, X.shape)
        self.refused("whole number", functional.group_norm, X.mT, 3.0)
        self.assertEqual(functional.group_norm(X.mT, 3).shape, X.mT.shape)

    def test_sizes(self):
        for make in (knn.PNV, knn.PowerNorm, knn.MABN, knn.BatchRenorm1d):
            for wrong in (6.0, (6,), "6", -2, True, None):
                with self.subTest(make=make, wrong=wrong):
                    self.refused(rf"num_features: expected an integer of 0 or more, got .*"
                                 rf"{str(wrong)[:2].strip('(')}", make, wrong)
            make(np.int64(6))(X)
        for wrong in (2.0, "3", 0, -1, True):
            self.refused("m: expected an integer of 1 or more, got", knn.MABN, 6, m=wrong)
            self.refused("num_groups: expected an integer of 1 or more", knn.GroupScaling, wrong, 6)
        self.refused("num_channels: expected an integer", knn.GroupScaling, 2, 6.0)

    def test_what_is_no_tensor(self):
        for wrong in WRONG:
            for norm in (knn.LayerNorm(6), knn.AdaNorm(6), knn.GroupScaling(2, 6), knn.PowerNorm(6),
                         knn.GroupNorm(2, 6), knn.RMSNorm(6), knn.ScaleNorm(6), knn.BatchNorm1d(6),
                         knn.InstanceNorm1d(6)):
                with self.subTest(norm=type(norm).__name__, wrong=type(wrong)):
                    self.refused(f"x: expected a tensor, got {type(wrong).__name__}", norm, wrong)
            for call in (functional.ada_norm, functional.group_scaling,
                         lambda x: functional.group_norm(x, 2),
                         lambda x: functional.layer_norm(x, 6), functional.instance_norm):
                self.refused(f"x: expected a tensor, got {type(wrong).__name__}", call, wrong)
        for wrong in (np.ones(6, np.float32), 2.0, [1.0] * 6):
            words = f"expected a tensor, got {type(wrong).__name__}"
            self.refused("weight: " + words, functional.layer_norm, X, 6, wrong)
            self.refused("bias: " + words, functional.layer_norm, X, 6, None, wrong)
            self.refused("gain: " + words, functional.scale_norm, X, wrong)
            with torch.no_grad():
                self.refused("weight: " + words, functional.layer_norm, X, 6, wrong)

    def test_tensors_without_numbers_beside_others(self):
        """A parameter that was made on meta and never filled would else count as absent."""
        for norm in (knn.LayerNorm(6), knn.PowerNorm(6), knn.BatchNorm1d(6), knn.ScaleNorm(6),
                     knn.GroupNorm(2, 6)):
            x = X.mT if isinstance(norm, (nn.BatchNorm1d, nn.GroupNorm)) else X
            y = norm(x)
            norm.to("meta")
            for grad in (True, False):
                name = type(norm).__name__
                with self.subTest(norm=name, grad=grad), torch.set_grad_enabled(grad):
                    self.refused("on one device, got cpu and meta", norm, x)
                    self.assertEqual(norm(x.to("meta")).shape, y.shape)
        for mask in (torch.ones(4, 5), torch.ones(4, 5, dtype=torch.bool)):
            self.refused("mask: .* on cpu, as x is, got meta", knn.PowerNorm(6), X, mask.to("meta"))
            self.refused("mask: .* on cpu, as x is, got meta", knn.BatchNorm1d(6), X.mT,
                         mask.to("meta"))

    def test_replacing_by_what_is_no_norm(self):
        model = nn.Sequential(nn.LayerNorm(6))
        for wrong in (None, "powernorm", knn.PowerNorm(6)):
            self.refused(r"convert: LayerNorm: expected a class of keel_norms.torch or a function",
                         knn.convert, model, {nn.LayerNorm: wrong})
        for wrong in (knn.PowerNorm, None, [nn.LayerNorm]):
            self.refused("convert: mapping: expected a dictionary", knn.convert, model, wrong)

    def test_counters_and_states_of_another_type(self):
        norm = knn.PowerNorm(6)
        norm.running_psi2 = torch.ones(5)
        self.refused(r"psi2: expected \(6\), got \(5\)", norm, X)
        norm = knn.PowerNorm(6)
        norm.num_batches_tracked = torch.tensor(3)
        self.refused("step: expected int32, got torch.int64", norm, X)


if __name__ == "__main__":
    unittest.main()

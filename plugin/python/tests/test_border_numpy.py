"""Wrong arguments of keel_norms.numpy are refused in words that say what was expected."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import numpy as kn  # noqa: E402

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)


class Border(unittest.TestCase):
    def refused(self, words, call, *arguments, **options):
        with self.assertRaisesRegex((KeelError, TypeError), words):
            call(*arguments, **options)

    def test_what_is_no_array(self):
        for norm in (kn.layer_norm, kn.power_norm, kn.group_scaling):
            self.refused("x: expected an array, got None", norm, None)
        self.refused("x: expected an array without a mask", kn.layer_norm,
                     np.ma.masked_array(X, X > 0))
        self.refused("gain: expected an array", kn.scale_norm, X, None)
        self.refused("dy: expected an array", kn.layer_norm(X).backward, None)

    def test_norms_of_another_name(self):
        self.refused("norm powernorm: expected one of layer_norm, .*; nearest: power_norm",
                     kn.first_state, "powernorm", 6)

    def test_states(self):
        state = kn.first_state("power_norm", 6)
        for wrong in ((1, 2), 3, [state], "psi2"):
            self.refused("state: expected a dictionary of psi2, nu, step, got", kn.power_norm, X,
                         state=wrong)
        self.refused("psi2: expected an array", kn.power_norm, X, state={**state, "psi2": None})
        self.refused("layer_norm.* has no state", kn.layer_norm, X, state=state)
        self.refused("layer_norm.* has no mask", kn.layer_norm, X, mask=np.ones(8))
        self.refused("layer_norm.* has no gz", kn.layer_norm, X, gz=np.ones(8))

    def test_sizes_of_states(self):
        for wrong in (6.0, -1, "6", True, None):
            self.refused("channels: expected an integer of 0 or more, got", kn.first_state,
                         "power_norm", wrong)
        for wrong in (2.0, 0, "3", True):
            self.refused("m: expected an integer of 1 or more, got", kn.first_state, "mabn", 6,
                         wrong)
            self.refused("m: expected an integer of 1 or more, got", kn.mabn, X, m=wrong)
        self.assertEqual(kn.first_state("mabn", np.int64(6), np.int32(3))["x2"].shape, (3, 6))


if __name__ == "__main__":
    unittest.main()

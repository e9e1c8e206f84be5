"""`identify` names the norms of the keel program from what `keel norm` computes; the variable
KEEL_PROGRAM names the program."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import settings

from keel_judge import identify

KEEL = os.environ.get("KEEL_PROGRAM")
SAME = {"layerscaling": "rmsnorm", "recurrentbatchnorm": "batchnorm",
        "sequencebatchnorm": "batchnorm", "batchrenorm": "batchnorm", "mabn": "pn_v",
        "unifiednorm": "pn_v",
        "dyt": "dynamic tanh", "seednorm": "rmsnorm"}  # b of seednorm is 0 at first
UNKNOWN = {"noisybatchnorm", "derf"}  # numbers that are drawn; a curve that is not tried
SHAPES = {"instancenorm": (8, 5, 24), "powernorm": (4, 24, 3, 5)}
OPTIONS = {"groupnorm": ("groups=4",), "groupscaling": ("groups=4",),
           "rmsnorm": ("bias=true",), "powernorm": ("mode=paper",),
           "instancenorm": ("gain=true", "bias=true"),
           "unifiednorm": ("keep=0",)}  # whose dx is exact in its first step
BEFORE = {"powernorm": {"psi2": np.ones(24), "nu": np.zeros(24)}}


def arrays_of(norm, draw):
    shape = SHAPES.get(norm["norm"], (40, 24))
    arrays = {"x": (draw.normal(size=shape) * 1.5 + 0.3).astype("f4"),
              "dy": draw.normal(size=shape).astype("f4")}
    width = {"scalenorm": 1, "weightnorm": 40}.get(norm["norm"], 24)
    for name in ("gain", "bias"):
        if name in norm["parameters"]:
            arrays[name] = (draw.random(width) + 0.5).astype("f4")
    return arrays


@unittest.skipUnless(KEEL, "KEEL_PROGRAM names no program")
class KeelNorms(unittest.TestCase):
    def result(self, norm, arrays):
        with tempfile.TemporaryDirectory() as folder:
            case, out = (pathlib.Path(folder) / name for name in ("case.npz", "result.npz"))
            np.savez(case, **arrays)
            options = [word for o in OPTIONS.get(norm, ()) for word in ("--option", o)]
            subprocess.run([KEEL, "norm", norm, *options, "--in", case, "--out", out], check=True,
                           capture_output=True)
            return dict(np.load(out))

    def test_every_norm(self):
        draw = np.random.default_rng(0)
        listed = subprocess.run([KEEL, "list", "norms", "--json"], check=True, text=True,
                                capture_output=True).stdout
        for norm in json.loads(listed):
            name = norm["norm"]
            with self.subTest(norm=name):
                arrays = arrays_of(norm, draw)
                got = self.result(name, arrays)
                answer = identify(x=arrays["x"], y=got["y"], gain=arrays.get("gain"),
                                  bias=arrays.get("bias"), dy=arrays["dy"], dx=got["dx"],
                                  dgain=got.get("dgain"), before=BEFORE.get(name))
                expected = [] if name in UNKNOWN else [SAME.get(name, name)]
                self.assertEqual(answer.names, expected, answer.text())
                if answer.best.gradients and expected:
                    self.assertNotEqual(answer.gradient(), "", answer.text())
                    self.assertLessEqual(answer.best.gradients.get("dgain", 0), 1)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

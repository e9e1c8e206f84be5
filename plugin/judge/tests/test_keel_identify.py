"""`keel identify` and `keel_judge.identify` give the same answers on the same numbers; the variable
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
from norm_programs import PROGRAMS, numbers

KEEL = os.environ.get("KEEL_PROGRAM")
UNKNOWN = {"dynamic tanh"}  # no norm of keel


def asked(arrays):
    """What the program says of the arrays, and its exit code."""
    before = arrays.get("before") or {}
    flat = {name: value for name, value in arrays.items() if name != "before"}
    flat |= {f"before.{name}": value for name, value in before.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.npz"
        np.savez(path, **{name: value.numpy() for name, value in flat.items()})
        done = subprocess.run([KEEL, "identify", path, "--json"], capture_output=True, text=True,
                              check=False)
        return json.loads(done.stdout), done.returncode


def of_keel(match):
    """A match's options that decide what it computes, in Python's words."""
    options = match["options"]
    return {"eps": float(options.get("eps", 0)), "groups": int(options.get("groups", 1)),
            "unbiased": options.get("unbiased") == "true", "offset": int(options.get("offset", 0)),
            "eps_place": "outside" if options.get("eps_outside") == "true" else "inside"}


def of_python(candidate):
    options = candidate.options
    place = options.get("eps_place", "inside")
    return {"eps": options.get("eps", 0.0), "groups": options.get("groups", 1),
            "unbiased": options.get("unbiased", False), "offset": options.get("offset", 0),
            "eps_place": "inside" if place == "clamp" else place}


@unittest.skipUnless(KEEL, "KEEL_PROGRAM names no program")
class SameAnswers(unittest.TestCase):
    def test_every_norm(self):
        for name in sorted(PROGRAMS.keys() - UNKNOWN):
            with self.subTest(norm=name):
                arrays = numbers(name)
                ours = identify(**arrays)
                keels, code = asked(arrays)
                self.assertEqual(code, 0, keels)
                self.assertEqual({m["norm"] for m in keels["matches"]}, set(ours.names))
                first = keels["matches"][0]
                if arrays.get("dx") is not None and name != "none":
                    self.assertNotEqual(first["gradient"], "")
                known = of_keel(first)
                self.assertIn(known, [of_python(c) for c in ours.matches])

    def test_options(self):
        """An offset, an unbiased variance, and an eps outside of the root."""
        arrays = numbers("layernorm")
        x, gain = arrays["x"] * 0.1, arrays["gain"]
        sd = x.std(1, keepdim=True)
        y = (gain + 1) * (x - x.mean(1, keepdim=True)) / (sd + 1e-3)
        keels, code = asked({"x": x, "y": y, "gain": gain})
        self.assertEqual(code, 0)
        self.assertEqual(of_keel(keels["matches"][0]), of_python(
            identify(x=x, y=y, gain=gain).best))

    def test_wrong_gradient(self):
        arrays = numbers("layernorm")
        arrays["dx"] = arrays["dx"] * 1.001
        keels, code = asked(arrays)
        self.assertEqual((code, keels["matches"][0]["gradient"], keels["fits"]), (1, "", False))
        self.assertEqual(identify(**arrays).gradient(), "")


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

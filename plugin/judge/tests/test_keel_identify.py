"""`keel identify` and `keel_judge.identify` give the same answers on the same numbers; the variable
KEEL_PROGRAM names the program."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import settings
import torch

from keel_judge import identify
from norm_programs import PROGRAMS, numbers

KEEL = os.environ.get("KEEL_PROGRAM")
UNKNOWN = {"dynamic tanh"}  # keel must be given its alpha
TABLE = settings.ROOT.parents[1] / "tests/program/identify_cases.inc"  # of both judges


def table():
    """(norm as keel runs it, its name, options, shape, shape as given, sizes of arrays)"""
    for row in re.findall(r"^IDENTIFY\((.*?)\)$", TABLE.read_text(encoding="utf-8"), re.M | re.S):
        norm, name, options, shape, arrays = re.findall(r'"([^"]*)"', row)
        shape, _, given = shape.partition(" as ")
        sizes = [tuple(map(int, s.split())) for s in (shape, given or shape)]
        yield (norm, name, dict(o.split("=") for o in options.split()), *sizes,
               {a: tuple(map(int, n.split("x"))) for a, n in (
                   pair.split(":") for pair in arrays.split())})


def computed(norm, shape, given, sizes):
    """The arrays that keel computes for a norm, as `identify` takes them."""
    draw = np.random.default_rng(0)
    arrays = {name: draw.normal(1, 1, shape).astype("f4") for name in ("x", "dy")}
    for name, size in sizes.items():
        arrays[name] = draw.normal(size=size).astype("f4")
        if not name.endswith(("bias", "mean", "nu")):
            arrays[name] = np.abs(arrays[name]) + np.float32(0.5)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        np.savez(path / "in.npz", **arrays)
        subprocess.run([KEEL, "norm", norm, "--in", path / "in.npz", "--out", path / "out.npz"],
                       check=True, capture_output=True)
        results = dict(np.load(path / "out.npz"))
    found = {n: arrays[n] for n in ("x", "dy", "gain", "bias") if n in arrays} \
        | {n: results[n] for n in ("y", "dx", "dgain") if n in results}
    found |= {n: found[n].reshape(given) for n in ("x", "y", "dy", "dx")}
    found = {name: torch.from_numpy(value) for name, value in found.items()}
    before = {n.removeprefix("state."): torch.from_numpy(arrays[n]) for n in arrays if "." in n}
    return found | ({"before": before} if before else {})


def asked(arrays):
    """The program's answer for the arrays, and its exit code."""
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
            "eps_place": "outside" if options.get("eps_outside") == "true" else "inside",
            "per_pixel": options.get("per_pixel") == "true",
            "channel_axis": options.get("channel_axis", "last")}


def of_python(candidate):
    options = candidate.options
    place = options.get("eps_place", "inside")
    return {"eps": options.get("eps", 0.0), "groups": options.get("groups", 1),
            "unbiased": options.get("unbiased", False), "offset": options.get("offset", 0),
            "eps_place": "inside" if place == "clamp" else place,
            "per_pixel": options.get("per_pixel", False),
            "channel_axis": str(options.get("channel_axis", "last"))}


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

    def test_one_table(self):
        """Both name every norm of the table that both read, by the same name and options."""
        rows = list(table())
        self.assertGreater(len(rows), 35)
        for norm, name, options, shape, given, sizes in rows:
            with self.subTest(norm=norm, shape=given):
                arrays = computed(norm, shape, given, sizes)
                ours = identify(**arrays)
                keels, code = asked(arrays)
                self.assertEqual(code, 0, keels)
                self.assertEqual({m["norm"] for m in keels["matches"]}, {name})
                self.assertEqual(set(ours.names), {name}, ours.text())
                self.assertLessEqual(options.items(), keels["matches"][0]["options"].items())
                own = [of_python(c) for c in ours.matches]
                self.assertTrue(any(of_keel(m) in own for m in keels["matches"]), (keels, own))
                self.assertNotEqual((ours.gradient(), keels["matches"][0]["gradient"]), ("", ""))

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

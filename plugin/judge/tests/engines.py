"""The bounds of the keel program for one op on given arrays, for the test that both judges agree.

keel takes arrays under the names of its nodes (docs/compare.md). Every array that is given here is
wrong in one element, so that `--dump` writes the bounds of all of its node."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

KEEL = os.environ.get("KEEL_PROGRAM")


class Subject:
    """One op or norm of keel, in one of its cases."""

    def __init__(self, words, case):
        self.words = [KEEL, "compare", *words, "--case", case, "--unfused"]
        facts = json.loads(self.run("--names", "--json").stdout)["arrays"]
        self.facts = {f["name"]: f for f in facts}
        with tempfile.TemporaryDirectory() as folder:
            start = pathlib.Path(folder) / "start.npz"
            self.run("--export", start)
            self.values = dict(np.load(start))

    def run(self, *options, code=0):
        done = subprocess.run([*self.words, *options], capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
        return done

    def shape(self, name):
        text = self.facts[name]["type"].partition("(")[2].rstrip(")")
        return tuple(int(size) for size in text.split(",")) if text else ()

    def inputs(self, name):
        """The arrays that a node reads; None for an absent one."""
        return [None if n == "-" else self.values[n] for n in self.facts[name]["inputs"]]

    def fill(self, results):
        """Values for every node: of `results`, functions of a node's inputs, or drawn. The last
        element of each first output of `results` is made wrong."""
        draw = np.random.default_rng(0)
        for name, fact in self.facts.items():
            if name in self.values:
                continue
            node, _, port = name.rpartition(".")
            known = results.get(fact["of"])
            if known:
                port = int(port) if port.isdigit() and self.is_output(node, fact) else 0
                value = known(*self.inputs(name))[port].astype("f4").reshape(self.shape(name))
                if port == 0:
                    value.flat[-1] += 1 + 10 * np.abs(value).max()
                self.values[name] = value
            elif fact["of"] == "reshape":
                self.values[name] = self.inputs(name)[0].reshape(self.shape(name))
            else:
                self.values[name] = draw.normal(size=self.shape(name)).astype("f4")

    def is_output(self, node, fact):
        """Whether a name is a further output of `node`, and not another node of the op."""
        return node in self.facts and self.facts[node]["inputs"] == fact["inputs"]

    def bounds(self):
        """By node: the bounds of its outputs, of the nodes that are wrong."""
        given = {n: v for n, v in self.values.items() if self.facts[n]["of"] not in (
            "input", "parameter", "state", "constant") and v.size}
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            np.savez(at / "given.npz", **given)
            self.run("--against", at / "given.npz", "--dump", at / "dump", code=1)
            found = {}
            for path in (at / "dump").glob("*.npz"):
                node = path.name.removesuffix(".given.npz.step0.npz")
                found[node] = {int(k.removeprefix("bound")): v for k, v in np.load(path).items()
                               if k.startswith("bound")}
        return found

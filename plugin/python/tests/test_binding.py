"""The kernels of libkeel_norm_torch.so beside those in Python, which call keel/norm.h by ctypes."""
import os
import pathlib
import resource
import subprocess
import sys
import threading
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError, _library  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402
from keel_norms.torch import _ops  # noqa: E402

SHIM = pathlib.Path(_library.path()).parent / "libkeel_norm_torch.so"
PAGES = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
ATTRIBUTES = {"group_norm": "groups=2", "group_scaling": "groups=2", "mabn": "m=3",
              "unified_norm": "m=4", "power_norm": "groups=2", "batch_renorm": "r_max=3 d_max=5"}


def calls(norm, dtype, strided):
    """The forward and the backward of a norm: op, inputs and attributes. The strided inputs are
    views of every second element."""
    facts = NORMS[norm]
    x = torch.randn((2, 4, 6) if norm == "instance_norm" else (4, 6), dtype=dtype)
    shapes = {"channels": (6,), "scalar": (), "ring": (4 if norm == "unified_norm" else 3, 6)}
    states = {name: torch.full(shapes[state.shape], float(state.first)).to(
        torch.int32 if name == "step" else dtype) for name, state in facts.states.items()}
    mask = torch.tensor([1, 0, 1, 1], dtype=torch.uint8) if facts.is_column else None
    values = {"x": x, "gain": torch.randn(1 if norm == "scale_norm" else 6, dtype=dtype),
              "bias": torch.randn(6, dtype=dtype), "mask": mask, **states,
              **{name: torch.randn(6 if norm == "seed_norm" else 1, dtype=dtype)
                 for name in facts.more}}
    text = " ".join(filter(None, [ATTRIBUTES.get(norm), facts.states and "training=true"]))
    inputs = [spread(values.get(name)) if strided else values.get(name)
              for name in _ops.OPS[norm].inputs]
    yield norm, inputs, text
    values.update(zip(facts.outputs, _ops.run(norm, inputs, text)), dy=torch.randn_like(x))
    names, known = _ops.OPS[norm + "_backward"][:2]
    kept = [pair for pair in text.split() if pair.split("=")[0] in known]
    kept += ["wants_dbias=true"] * ("wants_dbias" in known)
    given = [None if facts.lacks(values.get(name)) else values.get(name) for name in names]
    yield norm + "_backward", [spread(v) if strided else v for v in given], " ".join(kept)


def spread(value):
    """The same numbers with other strides."""
    if value is None or value.dim() == 0:
        return value
    return torch.stack([value, torch.zeros_like(value)], -1)[..., 0]


class Kernels(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_they_are_those_that_were_asked_for(self):
        wants = os.environ.get("KEEL_NORM_BINDING") != "ctypes" and SHIM.exists()
        self.assertEqual(_ops.IS_COMPILED, wants)

    def test_both_give_the_same_bits(self):
        for norm in NORMS:
            for dtype in (torch.float32, torch.float64):
                for strided in (False, True):
                    for op, inputs, text in calls(norm, dtype, strided):
                        with self.subTest(op=op, dtype=dtype, strided=strided):
                            pairs = zip(_ops.call(op, inputs, text), _ops.run(op, inputs, text),
                                        strict=True)
                            for got, expected in pairs:
                                self.assertEqual((got.dtype, got.shape),
                                                 (expected.dtype, expected.shape))
                                self.assertTrue(torch.equal(got, expected))

    def test_refusals_have_the_same_kinds_and_words(self):
        x, gain = torch.randn(4, 6), torch.ones(6)
        for inputs, text in (((x.half(), gain, None), ""), ((x, gain[:3], None), ""),
                             ((x, gain.double(), None), ""), ((x, gain.to(torch.int64), None), ""),
                             ((x, gain, None), "axes=3"), ((x, gain, None), "width=3")):
            found = []
            for run in (_ops.call, _ops.run):
                with self.assertRaises((KeelError, TypeError)) as caught:
                    run("layer_norm", inputs, text)
                found.append((type(caught.exception), str(caught.exception)))
            self.assertEqual(*found)

    def test_more_shapes_than_are_kept(self):
        for width in (*range(1, 1100), 1, 2):
            x = torch.randn(2, width)
            got = _ops.call("rms_norm", (x, None, None), "eps=1e-05")[0]
            torch.testing.assert_close(got, torch.nn.functional.rms_norm(x, (width,), eps=1e-5))

    def test_many_threads(self):
        wrong = []

        def work(seed):
            generator = torch.Generator().manual_seed(seed)
            for i in range(200):
                x = torch.randn(3, 1 + (seed + i) % 7, generator=generator)
                y = _ops.call("layer_norm", (x, None, None), "")[0]
                if not torch.equal(y, _ops.run("layer_norm", (x, None, None), "")[0]):
                    wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_memory_goes_back(self):
        """A handle that is not given back would keep its megabyte."""
        x, gain = spread(torch.randn(512, 512)), torch.ones(512)

        def used():
            pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")

        for _ in range(10):
            _ops.call("layer_norm", (x, gain, None), "")
        before = used()
        for _ in range(100):
            _ops.call("layer_norm", (x, gain, None), "")
            with self.assertRaises(KeelError):
                _ops.call("layer_norm", (x, gain[:3], None), "")
        self.assertLess(used() - before, 20e6)


class LargeResults(unittest.TestCase):
    x = torch.randn(16500, 512)  # beyond 32 MiB, and no whole number of large pages

    def test_the_same_bits(self):
        inputs, text = (self.x, torch.randn(512), None), "eps=1e-05"
        for got, expected in zip(_ops.call("layer_norm", inputs, text),
                                 _ops.run("layer_norm", inputs, text), strict=True):
            self.assertTrue(torch.equal(got, expected))

    @unittest.skipUnless(_ops.IS_COMPILED, "needs libkeel_norm_torch.so")
    @unittest.skipUnless(PAGES.exists() and "[never]" not in PAGES.read_text(), "no large pages")
    def test_their_pages_are_large(self):
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            _ops.call("layer_norm", (self.x, None, None), "")
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        small = self.x.nbytes // 4096
        self.assertLess(min(faults() for _ in range(5)), small // 4)


class Commit(unittest.TestCase):
    def test_all_or_none(self):
        for bad in (None, float("nan"), float("inf"), -float("inf")):
            states = [torch.zeros(3), torch.zeros(2, dtype=torch.float64),
                      torch.zeros((), dtype=torch.int32), torch.zeros(4, dtype=torch.bfloat16)]
            following = [torch.ones(3), torch.ones(2, dtype=torch.float64),
                         torch.ones((), dtype=torch.int32), torch.ones(4)]
            if bad is not None:
                following[1][1] = bad
            versions = [state._version for state in states]
            _ops.commit(states, following)
            for state, version in zip(states, versions):
                self.assertEqual(float(state.float().mean()), float(bad is None))
                # A tensor saved for a backward must know that it has changed.
                self.assertEqual(state._version - version, int(bad is None))

    def test_a_value_beyond_the_type_of_its_state(self):
        """70,000 is finite in float32, not in float16."""
        for dtype, moves in ((torch.float16, False), (torch.bfloat16, True)):
            for value in (7e4, -7e4):
                states = [torch.zeros(3), torch.zeros(2, dtype=dtype)]
                _ops.commit(states, [torch.ones(3), torch.full((2,), value)])
                self.assertEqual(float(states[0].mean()), float(moves))
                self.assertEqual(float(states[1][0]) != 0, moves)

    def test_states_that_are_views(self):
        whole = torch.zeros(2, 3)
        _ops.commit([whole[:, 1]], [torch.ones(2)])
        self.assertTrue(torch.equal(whole, torch.tensor([[0., 1, 0], [0, 1, 0]])))


class Loading(unittest.TestCase):
    @unittest.skipUnless(SHIM.exists(), "libkeel_norm_torch.so is not there")
    def test_without_pytorch_it_says_what_is_missing(self):
        program = ("import ctypes, sys; enter = ctypes.CDLL(sys.argv[1]).keel_norm_torch;"
                   "enter.restype = ctypes.c_char_p; print(enter(None, 0).decode())")
        said = subprocess.run([sys.executable, "-c", program, str(SHIM)], text=True,
                              capture_output=True, check=True).stdout
        self.assertEqual(said.strip(), "PyTorch has no libtorch_cpu.so")


if __name__ == "__main__":
    unittest.main()

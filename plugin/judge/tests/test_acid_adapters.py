"""The adapters of NumPy, JAX, MLX and ONNX Runtime: a right norm passes, a wrong one fails."""
import importlib.util
import unittest

import numpy
import settings
import torch

import acid_libraries
import keel_judge
from keel_judge.acid_test.adapters import library_of

NAMES = ["contract", "forward", "dx", "dgain"]


def numpy_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    return ((x - mean) / numpy.sqrt(numpy.square(x - mean).mean(-1, keepdims=True) + eps) * gain
            + bias).astype(x.dtype)


def numpy_backward(dy, x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / numpy.sqrt(numpy.square(x - mean).mean(-1, keepdims=True) + 1e-5)
    xhat, g = (x - mean) * rstd, dy * gain
    dx = rstd * (g - g.mean(-1, keepdims=True) - xhat * (g * xhat).mean(-1, keepdims=True))
    rows = tuple(range(dy.ndim - 1))
    return [t.astype(x.dtype) for t in (dx, (dy * xhat).sum(rows), dy.sum(rows))]


def without_mean(*given):
    dx, dgain, dbias = numpy_backward(*given)
    return dx + given[0].mean(-1, keepdims=True), dgain, dbias


class OwnAdapter(keel_judge.Adapter):
    """As the page shows one for a further library: here lists of Python."""

    def to_own(self, tensor):
        return tensor.tolist()

    def from_own(self, array):
        return torch.tensor(array, dtype=torch.float32)


def of_lists(x, gain, bias):
    arrays = (numpy.array(a, dtype=numpy.float32) for a in (x, gain, bias))
    return numpy_norm(*arrays).tolist()


def has(module):
    return importlib.util.find_spec(module) is not None


class Adapters(unittest.TestCase):
    def levels(self, norm, **options):
        options = {"as_": "layernorm", "quick": True, "isolate": False, "eps": 1e-5,
                   "only": NAMES, **options}
        report = keel_judge.acid(norm, **options)
        return [v.level for v in report.verdicts.values()], report.text()

    def check_all(self, norm, wanted, **options):
        levels, text = self.levels(norm, **options)
        self.assertEqual(levels, wanted, text)

    def test_numpy(self):
        self.assertEqual(library_of(numpy_norm), "numpy")
        self.check_all(numpy_norm, ["pass"] * 4, backward=numpy_backward)
        self.check_all(numpy_norm, ["pass", "pass", "FAIL", "pass"], backward=without_mean)
        self.check_all(numpy_norm, ["pass", "pass", "not tried", "not tried"], backward="none")

    def test_own(self):
        self.check_all(of_lists, ["pass", "pass", "not tried", "not tried"], adapter=OwnAdapter)

    @unittest.skipUnless(has("mlx"), "no MLX")
    def test_mlx(self):
        self.assertEqual(library_of(acid_libraries.mlx_layer_norm), "torch")  # imported inside
        self.check_all(acid_libraries.mlx_layer_norm, ["pass"] * 4, adapter="mlx")

    @unittest.skipUnless(has("onnxruntime") and has("onnx"), "no ONNX Runtime")
    def test_onnx(self):
        self.check_all(acid_libraries.ort_layer_norm, ["pass", "pass", "not tried", "not tried"],
                       adapter="onnx")

    @unittest.skipUnless(has("jax"), "no JAX")
    def test_jax(self):
        self.check_all(acid_libraries.jax_standardize, ["pass"] * 4, adapter="jax")


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

"""Norms of rows read tensors and arrays whose rows are contiguous in place, with the bits of
contiguous copies; what keel does not read in place is copied."""
import pathlib
import sys
import unittest

import numpy as np
import torch
from torch.autograd.profiler import profile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import numpy as kn  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import functional  # noqa: E402

SAMPLES, STEPS, HEADS, WIDTH = 2, 50, 4, 64
ROW = HEADS * WIDTH


def views():
    """Tensors that are not contiguous, by name, whose rows are."""
    projection = torch.randn(SAMPLES, STEPS, 3 * ROW)
    query = projection[..., :ROW]
    return {"part of a projection": query,
            "heads": query.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2),
            "heads of their own": torch.randn(SAMPLES, STEPS, HEADS, WIDTH).transpose(1, 2),
            "every second row": torch.randn(SAMPLES, 2 * STEPS, WIDTH)[:, ::2],
            "one row many times": torch.randn(STEPS, WIDTH).expand(SAMPLES, STEPS, WIDTH)}


def norms_of(width):
    """Functions of x by name, and whether their backward reads in place."""
    weight, bias, a, b = (torch.randn(width, requires_grad=True) for _ in range(4))
    gain = torch.ones(1, requires_grad=True)
    return {"layer_norm": (lambda x: functional.layer_norm(x, width, weight, bias), True),
            "rms_norm": (lambda x: functional.rms_norm(x, width, weight), True),
            "ada_norm": (functional.ada_norm, True),
            "detach_norm": (functional.detach_norm, True),
            "scale_norm": (lambda x: functional.scale_norm(x, gain), True),
            "group_scaling": (lambda x: functional.group_scaling(x, 2), True),
            "seed_norm": (lambda x: functional.seed_norm(x, weight, a, b), False)}


def allocated(call):
    """What a call returns, and the bytes of all that PyTorch allocates for it."""
    with profile(profile_memory=True) as seen:
        result = call()
    events = [event.self_cpu_memory_usage for event in seen.function_events
              if event.name == "[memory]" or event.self_cpu_memory_usage > 0]
    return result, sum(size for size in events if size > 0)


class Tensors(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_results_are_those_of_a_copy(self):
        for view, x in views().items():
            self.assertFalse(x.is_contiguous())
            for name, (norm, _) in norms_of(x.shape[-1]).items():
                dy = x.flip(0)
                found = []
                for given in (x, x.contiguous()):
                    leaf = given.detach().requires_grad_()
                    y = norm(leaf)
                    gradient, = torch.autograd.grad(y, leaf, dy)
                    found.append((y, gradient))
                with self.subTest(view=view, norm=name):
                    for got, expected in zip(*found):
                        self.assertTrue(torch.equal(got, expected))

    def test_gradients_of_parameters_are_those_of_a_copy(self):
        for view, x in views().items():
            norm = knn.LayerNorm(x.shape[-1])
            found = []
            for given in (x, x.contiguous()):
                dy = torch.ones_like(x).contiguous() * x
                found.append(torch.autograd.grad(norm(given), list(norm.parameters()), dy))
            with self.subTest(view=view):
                for got, expected in zip(*found):
                    self.assertTrue(torch.equal(got, expected))

    def test_no_tensor_is_copied(self):
        """A forward and a backward allocate y, dx and small tensors, and no copy of x or dy."""
        for view, x in list(views().items())[:2]:
            bytes_of_x = x.numel() * x.element_size()
            for name, (norm, is_whole) in norms_of(x.shape[-1]).items():
                leaf = x.detach().requires_grad_()
                y, forward = allocated(lambda: norm(leaf))
                dy = x.detach()
                _, backward = allocated(lambda: torch.autograd.grad(y, leaf, dy))
                with self.subTest(view=view, norm=name):
                    self.assertLess(forward, 1.5 * bytes_of_x)
                    self.assertGreaterEqual(forward, bytes_of_x)  # y
                    if is_whole:
                        self.assertLess(backward, 1.9 * bytes_of_x)

    def test_queries_and_keys_within_a_projection(self):
        projection = torch.randn(SAMPLES, STEPS, 3 * ROW)
        q, k = (projection[..., part * ROW:(part + 1) * ROW].unflatten(-1, (HEADS, WIDTH))
                .transpose(1, 2) for part in (0, 1))
        for kind in ("rms", "l2"):
            norm = knn.QKNorm(WIDTH, kind=kind)
            with torch.no_grad():
                (got, memory) = allocated(lambda: norm(q, k))
                expected = norm(q.contiguous(), k.contiguous())
            self.assertLess(memory, 2.5 * q.numel() * q.element_size())
            for g, e in zip(got, expected):
                self.assertTrue(torch.equal(g, e))

    def test_what_is_not_read_in_place_is_copied(self):
        """Rows with gaps or backwards, parameters with strides, and norms of other groups."""
        square = torch.randn(WIDTH, WIDTH)
        parameter = torch.randn(2 * WIDTH)[::2]
        for x in (square.T, square.repeat(1, 2)[:, ::2], square.expand(3, WIDTH, WIDTH).mT,
                  torch.randn(3, 1).expand(3, WIDTH)):
            got = functional.layer_norm(x, WIDTH, parameter)
            expected = functional.layer_norm(x.contiguous(), WIDTH, parameter.contiguous())
            self.assertTrue(torch.equal(got, expected))
        x = torch.randn(8, 12, 6)[::2, ::3].double()
        for norm in (functional.layer_norm, lambda x, _: functional.group_norm(x, 2),
                     lambda x, _: knn.PowerNorm(6).double()(x)):
            self.assertTrue(torch.equal(norm(x, 6), norm(x.contiguous(), 6)))


class Arrays(unittest.TestCase):
    def test_results_are_those_of_a_copy(self):
        random = np.random.default_rng(0)
        whole = random.standard_normal((SAMPLES, STEPS, 3 * ROW), np.float32)
        heads = whole[..., :ROW].reshape(SAMPLES, STEPS, HEADS, WIDTH).transpose(0, 2, 1, 3)
        fields = np.zeros((STEPS,), [("x", np.float32, (WIDTH,)), ("odd", np.uint8)])
        fields["x"] = whole[0, :STEPS, :WIDTH]
        for x in (heads, whole[:, ::-2, ROW:], whole[::-1, :, :ROW], whole.T, fields["x"]):
            width = x.shape[-1]
            gain = random.standard_normal((2 * width,), np.float32)[::2]
            for given in (kn.layer_norm, kn.rms_norm):
                before = x.copy()
                steps = [given(x, gain), given(np.ascontiguousarray(x), gain.copy())]
                for name in ("y", "dx", "dgain"):
                    got, expected = (step.y if name == "y" else getattr(step.backward(dy), name)
                                     for step, dy in zip(steps, (x, np.ascontiguousarray(x))))
                    self.assertTrue(np.array_equal(got, expected), name)
                self.assertTrue(np.array_equal(x, before))


if __name__ == "__main__":
    unittest.main()

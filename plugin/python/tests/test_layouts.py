"""Memory formats, torch.fx and torch.jit.trace of the modules of keel_norms.torch."""
import copy
import io
import pathlib
import sys
import unittest
import warnings

import torch
from torch import fx, nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

LAST, LAST_3D = torch.channels_last, torch.channels_last_3d
COLUMNS = ("PNV", "PowerNorm", "MABN", "UnifiedNorm", "BatchRenorm1d", "BatchRenorm2d",
           "BatchNorm2d", "SyncPNV", "SyncPowerNorm", "SyncMABN", "SyncUnifiedNorm",
           "SyncBatchRenorm", "SyncBatchNorm")
# Modules of images (n, 6, 4, 5), and of films (n, 6, 3, 4, 5).
IMAGES = {
    **{name: (lambda name=name: getattr(knn, name)(6)) for name in COLUMNS},
    "GroupNorm": lambda: knn.GroupNorm(2, 6),
    "InstanceNorm2d": lambda: knn.InstanceNorm2d(6, affine=True),
    **{name: (lambda name=name: getattr(knn, name)((6, 4, 5)))
       for name in ("LayerNorm", "LayerNormSimple", "RMSNorm", "AdaNorm", "DetachNorm",
                    "ScaleNorm", "SeeDNorm", "DyT", "Derf")},
    "LayerNorm of rows": lambda: knn.LayerNorm(5), "RMSNorm, cast": lambda: knn.RMSNorm(
        5, cast_first=True),
    "GroupScaling": lambda: knn.GroupScaling(1, 5),
}
FILMS = {
    "GroupNorm": lambda: knn.GroupNorm(3, 6), "SyncBatchNorm": lambda: knn.SyncBatchNorm(6),
    **{name: (lambda name=name: getattr(knn, name)((3, 4, 5)))
       for name in ("LayerNorm", "LayerNormSimple", "RMSNorm", "AdaNorm", "DetachNorm",
                    "ScaleNorm")},
    "GroupScaling": lambda: knn.GroupScaling(5, 5),
}


class MemoryFormats(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def same(self, make, x, memory_format):
        """A step and an evaluation with the channels last, beside one with the channels first."""
        first, last = make(), make()
        last.load_state_dict(first.state_dict())
        for training in (True, False):
            results = []
            for module in (first.train(training), last.train(training)):
                given = x if module is first else x.contiguous(memory_format=memory_format)
                given = given.detach().requires_grad_()
                y = module(given)
                y.backward(x.flip(0))
                results.append([y, given.grad, *module.state_dict().values()])
            self.assertTrue(results[0][0].is_contiguous())
            self.assertTrue(results[1][0].is_contiguous(memory_format=memory_format))
            self.assertEqual(results[1][0].stride(), given.stride())
            for g, e in zip(*results):
                torch.testing.assert_close(g, e, rtol=2e-5, atol=2e-5)

    def test_images(self):
        for name, make in IMAGES.items():
            with self.subTest(module=name):
                self.same(make, torch.randn(3, 6, 4, 5), LAST)

    def test_films(self):
        for name, make in FILMS.items():
            with self.subTest(module=name):
                self.same(make, torch.randn(2, 6, 3, 4, 5), LAST_3D)

    def test_images_of_one_pixel(self):
        """Their memory is the same in both formats, which only the strides tell apart."""
        for make in (knn.BatchNorm2d, knn.PowerNorm, knn.BatchRenorm2d, knn.SyncBatchNorm):
            for memory_format in (LAST, torch.contiguous_format):
                x = torch.empty(4, 6, 1, 1, memory_format=memory_format).normal_()
                with self.subTest(module=make.__name__, memory_format=memory_format):
                    self.assertEqual(make(6)(x).stride(), x.stride())

    def test_heads_are_refused_for_images_in_both_formats(self):
        for memory_format in (LAST, torch.contiguous_format):
            x = torch.randn(2, 6, 4, 4).contiguous(memory_format=memory_format)
            with self.assertRaisesRegex(ValueError, "x: expected .* with (groups|heads)"):
                knn.PowerNorm(6, heads=2)(x)


class Network(nn.Module):
    """A norm between two layers."""

    def __init__(self, norm):
        super().__init__()
        self.first, self.norm = nn.Identity(), norm

    def forward(self, x):
        return 2 * self.norm(self.first(x))


class Masked(Network):
    def forward(self, x, mask):
        return 2 * self.norm(self.first(x), mask)


class Fx(unittest.TestCase):
    def same(self, traced, plain, inputs):
        y, expected = traced(*inputs), plain(*inputs)
        self.assertTrue(torch.equal(y, expected))
        y.sum().backward()
        expected.sum().backward()
        for g, e in zip(traced.state_dict().values(), plain.state_dict().values()):
            self.assertTrue(torch.equal(g, e))
        for g, e in zip(traced.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(g.grad, e.grad))

    def test_a_norm_in_a_network(self):
        for name, make in {**IMAGES, **FILMS}.items():
            x = torch.randn((2, 6, 4, 5) if name in IMAGES else (2, 6, 3, 4, 5), requires_grad=True)
            norm = (IMAGES.get(name) or make)()
            plain = Network(copy.deepcopy(norm))
            with self.subTest(module=name):
                self.same(fx.symbolic_trace(Network(norm)), plain, [x])

    def test_a_norm_by_itself(self):
        for name, make in IMAGES.items():
            norm = make()
            plain = copy.deepcopy(norm)
            x = torch.randn(2, 6, 4, 5, requires_grad=True)
            with self.subTest(module=name):
                self.same(fx.symbolic_trace(norm), plain, [x])

    def test_masks(self):
        mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
        for make in (knn.PowerNorm, knn.PNV, knn.MABN, knn.UnifiedNorm, knn.BatchRenorm1d):
            norm = make(6)
            plain = Masked(copy.deepcopy(norm))
            x = torch.randn(2, 3, 6, requires_grad=True)
            self.same(fx.symbolic_trace(Masked(norm)), plain, [x, mask])

    def test_training_and_evaluation_are_the_modules(self):
        norm = knn.PowerNorm(6)
        traced = fx.symbolic_trace(Network(norm))
        traced(torch.randn(5, 6))
        before = copy.deepcopy(norm.state_dict())
        traced.eval()(torch.randn(5, 6))
        for name, value in norm.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))
        self.assertEqual(int(norm.num_batches_tracked), 1)


class JitTrace(unittest.TestCase):
    def trace(self, module, x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own, that it is deprecated
            return torch.jit.trace(module, x)

    def test_evaluation_is_traced_and_saved(self):
        for name, make in IMAGES.items():
            module, x = make().eval(), torch.randn(2, 6, 4, 5)
            with self.subTest(module=name), torch.no_grad():
                file, other = io.BytesIO(), torch.randn(2, 6, 4, 5)
                traced = self.trace(module, x)
                self.assertTrue(torch.equal(traced(other), module(other)))
                torch.jit.save(traced, file)
                file.seek(0)
                self.assertTrue(torch.equal(torch.jit.load(file)(other), module(other)))

    def test_training_of_states_is_refused(self):
        for name in COLUMNS:
            with self.assertRaisesRegex(RuntimeError, f"{name}: torch.jit.trace records no"):
                self.trace(IMAGES[name](), torch.randn(2, 6, 4, 5))


if __name__ == "__main__":
    unittest.main()

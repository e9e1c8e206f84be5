"""PyTorch's demands on every module of keel_norms.torch: copies, files, the meta device, export and
compilation, and exact gradient checkpoints. KEEL_THOROUGH=1 compiles all modules with Inductor."""
import copy
import io
import os
import pathlib
import pickle
import sys
import unittest

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

# Every module: how it is made, with an argument for its device, and the shape of x.
MODULES = {
    "LayerNorm": (lambda: knn.LayerNorm(8), (6, 5, 8)),
    "RMSNorm": (lambda: knn.RMSNorm(8, offset=1.0), (6, 5, 8)),
    "GroupNorm": (lambda: knn.GroupNorm(2, 8), (6, 8, 3, 2)),
    "InstanceNorm1d": (lambda: knn.InstanceNorm1d(8, affine=True), (6, 8, 5)),
    "InstanceNorm2d": (lambda: knn.InstanceNorm2d(8), (6, 8, 3, 2)),
    "LayerNormSimple": (lambda: knn.LayerNormSimple(8), (6, 8)),
    "AdaNorm": (lambda: knn.AdaNorm(8), (6, 8)),
    "DetachNorm": (lambda: knn.DetachNorm(8), (6, 8)),
    "ScaleNorm": (lambda: knn.ScaleNorm(8), (6, 8)),
    "SeeDNorm": (lambda: knn.SeeDNorm(8, b_init=0.1), (6, 5, 8)),
    "DyT": (lambda: knn.DyT(8), (6, 5, 8)),
    "Derf": (lambda: knn.Derf(8, shift_init=0.25), (6, 5, 8)),
    "GroupScaling": (lambda: knn.GroupScaling(2, 8), (6, 8)),
    "BatchNorm1d": (lambda: knn.BatchNorm1d(8), (6, 8)),
    "BatchNorm2d": (lambda: knn.BatchNorm2d(8), (6, 8, 3, 2)),
    "BatchRenorm1d": (lambda: knn.BatchRenorm1d(8, r_max=3, d_max=5), (6, 8)),
    "BatchRenorm2d": (lambda: knn.BatchRenorm2d(8), (6, 8, 3, 2)),
    "RegularizedBatchNorm": (lambda: knn.RegularizedBatchNorm(8), (6, 8)),
    "PNV": (lambda: knn.PNV(8), (6, 8)),
    "PowerNorm": (lambda: knn.PowerNorm(8), (6, 8)),
    "PowerNorm, heads": (lambda: knn.PowerNorm(8, heads=2), (6, 8)),
    "MABN": (lambda: knn.MABN(8, m=2, warmup=0, clip_after=0), (6, 8)),
    "SyncBatchNorm": (lambda: knn.SyncBatchNorm(8), (6, 8)),
    "SyncPNV": (lambda: knn.SyncPNV(8), (6, 8)),
    "SyncPowerNorm": (lambda: knn.SyncPowerNorm(8), (6, 8)),
    "SyncMABN": (lambda: knn.SyncMABN(8, m=2), (6, 8)),
    "UnifiedNorm": (lambda: knn.UnifiedNorm(8, m=2, warmup=0, clip_after=0), (6, 8)),
    "SyncUnifiedNorm": (lambda: knn.SyncUnifiedNorm(8, m=2), (6, 8)),
    "SyncBatchRenorm": (lambda: knn.SyncBatchRenorm(8), (6, 8)),
}
# Their forward reads the state in training.
READERS = ("RegularizedBatchNorm", "BatchRenorm1d", "PowerNorm", "PowerNorm, heads", "MABN",
           "UnifiedNorm")


def step(run, module, x, seed=0, dtype=None):
    """y and the gradients of x and of the parameters, with a dy that `dtype` can hold."""
    x = x.clone().requires_grad_()
    y = run(x)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed))
    dy = dy.to(dtype or y.dtype).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, [x, *module.parameters()], dy)]


class Every(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def each(self, names=tuple(MODULES)):
        """A module that has trained a step, and an x; each in a subtest of its own."""
        for name in names:
            make, shape = MODULES[name]
            with self.subTest(module=name):
                module = make()
                step(module, module, 2 + torch.randn(shape))
                self.check(name, module, 2 + torch.randn(shape))

    def same(self, got, expected):
        for g, e in zip(got, expected, strict=True):
            self.assertTrue(torch.equal(g, e))

    def same_step(self, other, module, x):
        """Both modules end with the same bits, in values, gradients and buffers."""
        self.same(step(other, other, x), step(module, module, x))
        self.same(other.state_dict().values(), module.state_dict().values())

    def test_the_list_is_complete(self):
        # WeightNorm is a parametrization, which test_weight_norm tests; test_pairs has the others.
        classes = {name for name in knn.__all__ if isinstance(getattr(knn, name), type)}
        classes -= {"WeightNorm", "AdaLayerNormZero", "GatedRMSNorm", "QKNorm"}
        self.assertEqual(classes, {name.split(",")[0] for name in MODULES})

    def test_deepcopy_pickle_and_files(self):
        def check(name, module, x):
            fresh = MODULES[name][0]()
            file = io.BytesIO()
            torch.save(module.state_dict(), file)
            file.seek(0)
            fresh.load_state_dict(torch.load(file, weights_only=True), strict=True)
            copies = copy.deepcopy(module), pickle.loads(pickle.dumps(module)), fresh
            for other in copies:
                self.same_step(other, copy.deepcopy(module), x)
        self.check = check
        self.each()

    def test_the_meta_device(self):
        def check(name, module, x):
            with torch.device("meta"):
                made = MODULES[name][0]()
                y = made(torch.empty_like(x, device="meta"))
            self.assertEqual((y.shape, y.device.type), (x.shape, "meta"))
            real = made.to_empty(device="cpu")
            real.load_state_dict(module.state_dict())
            self.same_step(real, module, x)
        self.check = check
        self.each()

    def test_functional_call(self):
        def check(_, module, x):
            zeros = {name: torch.zeros_like(p) for name, p in module.named_parameters()}
            y = torch.func.functional_call(module, zeros, x)
            other = copy.deepcopy(module).eval()
            module.eval()
            with torch.no_grad():
                for parameter in other.parameters():
                    parameter.add_(1.5)
            self.same([torch.func.functional_call(module, dict(other.named_parameters()), x)],
                      [other(x)])
            self.assertEqual(y.shape, x.shape)
        self.check = check
        self.each()

    def test_export_of_evaluation(self):
        def check(_, module, x):
            program = torch.export.export(module.eval(), (x,))
            self.same([program.module()(x)], [module(x)])
        self.check = check
        self.each()

    def test_modules_of_other_types(self):
        """A module of a narrow type computes in float32 and rounds what it gives and its buffers;
        a double one agrees with both."""
        def check(name, module, x):
            for dtype in (torch.bfloat16, torch.float16):
                narrow = copy.deepcopy(module).to(dtype)
                wide = copy.deepcopy(narrow).float()
                rounded = x.to(dtype)
                got = step(narrow, narrow, rounded)
                expected = step(wide, wide, rounded.float(), dtype=dtype)
                self.same(got, [value.to(dtype) for value in expected])
                for key, buffer in narrow.named_buffers():
                    self.assertTrue(torch.equal(buffer, wide.get_buffer(key).to(buffer.dtype)), key)
            double = copy.deepcopy(module).double()
            got, expected = step(double, double, x.double()), step(module, module, x)
            for g, e in zip((*got, *double.buffers()), (*expected, *module.buffers()), strict=True):
                torch.testing.assert_close(g.to(e.dtype), e, rtol=1e-4, atol=1e-4)
        self.check = check
        self.each()

    def test_states_beyond_half(self):
        """float16 holds no mean square of 70,000: keel's own states stay in float32, and those of
        batch norms, which torch.nn converts, stay as they were."""
        x = (300 * torch.ones(4, 3)).half()
        x[0] = -300
        for module in (knn.PNV(3), knn.PowerNorm(3), knn.MABN(3), knn.UnifiedNorm(3),
                       knn.BatchRenorm1d(3)):
            module.half()(x)
            for name, buffer in module.named_buffers():
                self.assertNotIn(buffer.dtype, (torch.float16, torch.bfloat16), name)
                self.assertTrue(bool(torch.isfinite(buffer).all()), name)
        norm = knn.PNV(3).half()
        norm(x)
        self.assertTrue(torch.allclose(norm.running_psi2, torch.tensor(0.9 + 0.1 * 9e4)))
        self.assertEqual(copy.deepcopy(norm).double().running_psi2.dtype, torch.float64)
        for make in (knn.BatchNorm1d(3, momentum=1.0), torch.compile(
                knn.BatchNorm1d(3, momentum=1.0), backend="aot_eager", fullgraph=True)):
            batch = make.half()
            self.assertTrue(bool(torch.isfinite(batch(x)).all()))
            self.assertTrue(bool((batch.running_var == 1).all()))
            self.assertTrue(bool((batch.running_mean == 0).all()))

    def compiled(self, backend, names):
        def check(_, module, x):
            torch._dynamo.reset()
            other = copy.deepcopy(module)
            run = torch.compile(other, backend=backend, fullgraph=True)
            for number in range(2):
                self.same(step(run, other, x, number), step(module, module, x, number))
                self.same(other.state_dict().values(), module.state_dict().values())
            self.same([run.eval()(x)], [module.eval()(x)])
        self.check = check
        self.each(names)

    def test_compiled_in_one_graph(self):
        self.compiled("aot_eager", tuple(MODULES))

    @unittest.skipUnless(os.environ.get("KEEL_THOROUGH"), "takes minutes: KEEL_THOROUGH=1")
    def test_compiled_by_inductor(self):
        self.compiled("inductor", tuple(MODULES))


class Checkpoints(unittest.TestCase):
    def network(self, name):
        """Three norms of a kind in a row: the last one alone would not show what goes wrong."""
        torch.manual_seed(2)
        norms = [MODULES[name][0]() for _ in range(3)]
        return nn.Sequential(*[layer for norm in norms for layer in (nn.Linear(8, 8), norm)])

    def losses(self, network, run, batches):
        """Steps of two forwards for one backward each; all gradients, then all buffers."""
        found = []
        for pair in batches:
            xs = [x.clone().requires_grad_() for x in pair]
            loss = sum(run(network, x).square().sum() * (1 + i) for i, x in enumerate(xs))
            found += torch.autograd.grad(loss, [*xs, *network.parameters()])
        return [*found, *network.buffers()]

    def test_the_bits_of_no_checkpoint(self):
        for name in (*READERS, "PNV", "BatchNorm1d", "LayerNorm"):
            for forwards in (1, 2):
                with self.subTest(norm=name, forwards=forwards):
                    generator = torch.Generator().manual_seed(3)
                    batches = [[2 + torch.randn(6, 8, generator=generator)
                                for _ in range(forwards)] for _ in range(3)]
                    expected = self.losses(self.network(name), lambda f, x: f(x), batches)
                    got = self.losses(self.network(name), knn.checkpoint, batches)
                    for g, e in zip(got, expected, strict=True):
                        self.assertTrue(torch.equal(g, e))

    def test_a_checkpoint_within_another_and_a_second_backward(self):
        for name in READERS:
            # The inner part last, and with layers after it, so that the outer part runs to its end.
            for end in (6, 4):
                with self.subTest(norm=name, end=end):
                    self.nested(self.network(name), end)

    def nested(self, network, end):
        def outer(x):
            return network[end:](knn.checkpoint(network[2:end], network[:2](x)))

        x = (2 + torch.randn(6, 8)).requires_grad_()
        plain = copy.deepcopy(network)
        weights = torch.randn(6, 8)  # the gradient of a plain sum would be almost 0
        y, expected = knn.checkpoint(outer, x), plain(x)
        for _ in range(2):
            got = torch.autograd.grad(y, [x, *network.parameters()], weights, retain_graph=True)
            wanted = torch.autograd.grad(expected, [x, *plain.parameters()], weights,
                                         retain_graph=True)
            for g, e in zip(got, wanted, strict=True):
                self.assertTrue(torch.equal(g, e))

    def test_a_checkpoint_of_pytorch_around_an_exact_one_is_refused(self):
        network = self.network("PowerNorm")
        x = torch.randn(6, 8, requires_grad=True)
        y = torch_checkpoint(lambda x: network[4](knn.checkpoint(network[:4], x)), x,
                             use_reentrant=False)
        with self.assertRaisesRegex(RuntimeError, "outside of the checkpoint"):
            y.sum().backward()

    def test_evaluation(self):
        network = self.network("PowerNorm").eval()
        x = torch.randn(6, 8, requires_grad=True)
        (dx,) = torch.autograd.grad(knn.checkpoint(network, x).sum(), x)
        self.assertTrue(torch.equal(dx, torch.autograd.grad(network(x).sum(), x)[0]))


if __name__ == "__main__":
    unittest.main()

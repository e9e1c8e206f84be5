"""keel_norms.torch on the samples by which PyTorch tests its own modules, and on empty batches."""
import copy
import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

try:
    from torch.testing._internal.common_modules import module_db
except ImportError as error:  # it asks for the package expecttest
    module_db = None
    print(f"test_samples: PyTorch's samples were not tried: {error}")

OURS = {nn.BatchNorm1d: knn.BatchNorm1d, nn.BatchNorm2d: knn.BatchNorm2d,
        nn.GroupNorm: knn.GroupNorm, nn.InstanceNorm1d: knn.InstanceNorm1d,
        nn.InstanceNorm2d: knn.InstanceNorm2d, nn.LayerNorm: knn.LayerNorm,
        nn.RMSNorm: knn.RMSNorm}
# Running statistics, which keel's instance norms say they do not keep.
REFUSED = {nn.InstanceNorm1d: 2, nn.InstanceNorm2d: 2}


def step(module, inputs, keywords):
    """y, the gradients of x and the parameters, and the buffers."""
    inputs = [v.detach().clone().requires_grad_() if torch.is_tensor(v) else v for v in inputs]
    y = module(*inputs, **keywords)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    given = [v for v in inputs if torch.is_tensor(v)]
    found = torch.autograd.grad(y, [*given, *module.parameters()], dy)
    return [y.detach(), *found, *module.buffers()]


@unittest.skipIf(module_db is None, "needs the package expecttest")
class Samples(unittest.TestCase):
    def samples(self, dtype, training):
        for info in module_db:
            if info.module_cls in OURS:
                torch.manual_seed(3)
                for sample in info.module_inputs_func(info, device="cpu", dtype=dtype,
                                                      requires_grad=True, training=training):
                    yield info.module_cls, sample

    def test_they_agree_with_pytorch(self):
        for dtype in (torch.float32, torch.float64):
            for training in (True, False):
                refused = dict.fromkeys(REFUSED, 0)
                for theirs, sample in self.samples(dtype, training):
                    with self.subTest(module=theirs.__name__, sample=sample.desc, dtype=dtype,
                                      training=training):
                        refused[theirs] = refused.get(theirs, 0) + self.check(
                            theirs, sample, dtype, training)
                self.assertEqual({k: n for k, n in refused.items() if n}, REFUSED)

    def check(self, theirs, sample, dtype, training):
        """Whether the sample was refused."""
        made, given = sample.constructor_input, sample.forward_input
        old = theirs(*made.args, **made.kwargs).to(dtype).train(training)
        new = OURS[theirs](*made.args, **made.kwargs).to(dtype).train(training)
        for parameter in old.parameters():
            nn.init.normal_(parameter, 0.5)
        new.load_state_dict(old.state_dict())
        try:
            got = step(new, given.args, given.kwargs)
        except NotImplementedError:
            return True
        for g, e in zip(got, step(old, given.args, given.kwargs), strict=True):
            torch.testing.assert_close(g, e, rtol=2e-5, atol=2e-5)
        return False


class EmptyBatches(unittest.TestCase):
    PAIRS = [(knn.LayerNorm(8), nn.LayerNorm(8), (0, 8)),
             (knn.LayerNorm(8), nn.LayerNorm(8), (3, 0, 8)),
             (knn.RMSNorm(8), nn.RMSNorm(8), (0, 5, 8)),
             (knn.GroupNorm(2, 8), nn.GroupNorm(2, 8), (0, 8, 3, 3)),
             (knn.GroupNorm(2, 8), nn.GroupNorm(2, 8), (0, 8)),
             (knn.BatchNorm1d(8), nn.BatchNorm1d(8), (0, 8)),
             (knn.BatchNorm2d(8), nn.BatchNorm2d(8), (0, 8, 3, 3))]
    OWN = [knn.AdaNorm(8), knn.DetachNorm(8), knn.ScaleNorm(8), knn.SeeDNorm(8), knn.DyT(8),
           knn.Derf(8), knn.GroupScaling(2, 8), knn.PNV(8), knn.PowerNorm(8), knn.MABN(8),
           knn.UnifiedNorm(8), knn.BatchRenorm1d(8), knn.InstanceNorm1d(8, affine=True)]

    def test_both_directions_are_pytorchs(self):
        for new, old, shape in self.PAIRS:
            for training in (True, False):
                with self.subTest(norm=new, training=training):
                    x = torch.zeros(shape)
                    for g, e in zip(step(new.train(training), [x], {}),
                                    step(old.train(training), [x], {}), strict=True):
                        self.assertTrue(torch.equal(g, e))

    def test_norms_that_pytorch_lacks_leave_their_state(self):
        for norm in self.OWN:
            x = torch.zeros((0, 8, 4) if isinstance(norm, nn.InstanceNorm1d) else (0, 8))
            before = copy.deepcopy(norm.state_dict())
            with self.subTest(norm=norm):
                y, *found = step(norm, [x], {})
                self.assertEqual((y.shape, found[0].shape), (x.shape, x.shape))
                for gradient in found[1:1 + len(list(norm.parameters()))]:
                    self.assertEqual(float(gradient.abs().sum()), 0)
                for name, value in norm.state_dict().items():
                    self.assertTrue(torch.equal(value, before[name]), name)


if __name__ == "__main__":
    unittest.main()

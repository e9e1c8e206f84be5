"""Hostile data: means of many deviations, denormals, saturated softmax, rows that are padding."""
import unittest

import settings
import torch
import torch.nn.functional as F
from torch import nn

import keel_judge

TYPES = (torch.float32, torch.bfloat16, torch.float16)
ACTIVATIONS = ("gelu", "silu", "elu", "selu", "mish", "hardswish", "softplus", "logsigmoid",
               "hardsigmoid", "leaky_relu", "tanhshrink", "softsign", "relu6", "celu", "hardtanh")
FUNCTIONS = ("exp", "sin", "cos", "tan", "expm1", "erf", "atan", "reciprocal", "square", "exp2",
             "abs", "sinh", "cosh", "erfc", "sign", "floor", "tanh", "sigmoid")
POSITIVE = ("log", "sqrt", "rsqrt", "log1p", "log2", "log10")


def step_of(function, x):
    """Forward and backward with a random gradient."""
    x = x.clone().requires_grad_()
    y = function(x)
    (y * torch.randn_like(y)).sum().backward()


class Hostile(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, name, function, x):
        for dtype in TYPES:
            with self.subTest(case=name, dtype=dtype):
                torch.manual_seed(0)
                of_type = function.to(dtype) if isinstance(function, nn.Module) else function
                with keel_judge.judge() as report:
                    step_of(of_type, x.to(dtype))
                self.assertTrue(report.ok, report.text())
                self.assertGreater(report.judged, 3)

    def test_means_of_many_deviations(self):
        for mean in (1e2, 1e4, 1e6):
            x = torch.randn(4, 16, 8, 8) + mean
            self.check(f"batch norm {mean}", nn.BatchNorm2d(16), x)
            self.check(f"group norm {mean}", nn.GroupNorm(4, 16), x)
            self.check(f"channels last {mean}", nn.GroupNorm(4, 16),
                       x.to(memory_format=torch.channels_last))
            self.check(f"layer norm {mean}", nn.LayerNorm(769), torch.randn(20, 769) + mean)
            self.check(f"few features {mean}", nn.LayerNorm(3), torch.randn(200, 3) + mean)
            self.check(f"rms norm {mean}", nn.RMSNorm(769), torch.randn(20, 769) + mean)
        self.check("std", lambda x: x.std(1) + x.var(1), torch.randn(9, 88) + 1e3)

    def test_denormals(self):
        x = torch.randn(8, 64) * 1e-39
        for name, function in {"linear": nn.Linear(64, 32), "layer norm": nn.LayerNorm(64),
                               "softmax": lambda x: F.softmax(x, -1), "norm": lambda x: x.norm(),
                               "quotient": lambda x: 1e-38 / x, "std": lambda x: x.std(1)}.items():
            self.check(name, function, x)

    def test_saturated(self):
        x = torch.randn(16, 40) * 300
        self.check("softmax", lambda x: F.softmax(x, -1), x)
        self.check("loss", lambda x: F.cross_entropy(x, torch.arange(16), reduction="none"), x)
        self.check("sigmoid", torch.sigmoid, x)
        self.check("bce", lambda x: F.binary_cross_entropy_with_logits(
            x, torch.full_like(x, 0.3), reduction="none"), x)

    def test_attention_with_masks(self):
        q, k = torch.randn(2, 2, 33, 16) * 5, torch.randn(2, 2, 33, 16) * 6
        padding = torch.ones(2, 1, 33, 33, dtype=torch.bool)
        padding[0] = False  # every row of the first is padding
        added = torch.zeros(2, 1, 33, 33)
        added[1, :, :, 20:] = -1e9
        for name, mask in (("none", None), ("padding", padding), ("added", added)):
            def attend(x, mask=mask):
                bias = mask if mask is None or mask.dtype == torch.bool else mask.to(x.dtype)
                return F.scaled_dot_product_attention(x, k.to(x.dtype), x * 0.3, attn_mask=bias)
            self.check(name, attend, q)
        large = torch.tensor([100.0] * 8 + [-100.0] * 8)
        twice = torch.cat([k[..., :8]] * 2, -1)
        self.check("scores that cancel", lambda x: F.scaled_dot_product_attention(
            x, twice.to(x.dtype), x * 0.3), q + large)
        self.check("causal", lambda x: F.scaled_dot_product_attention(
            x, x, x, is_causal=True), q)

    def test_element_wise(self):
        wide = torch.randn(16, 100) * 10
        for name in ACTIVATIONS:
            self.check(name, getattr(F, name), wide)
        self.check("gelu with tanh", lambda x: F.gelu(x, approximate="tanh"), wide)
        for name in FUNCTIONS:
            self.check(name, getattr(torch, name), wide / 5)
        for name in POSITIVE:
            self.check(name, getattr(torch, name), wide.abs() + 1e-3)

    def test_sums(self):
        self.check("equal terms", lambda x: x.sum(0), torch.full((100000, 1), 0.1))
        self.check("ones", lambda x: torch.ones(1, 20000, dtype=x.dtype) @ x, torch.rand(20000, 4))
        self.check("one row of a table", lambda w: F.embedding(
            torch.zeros(3000, dtype=torch.long), w), torch.randn(10, 8))
        step = torch.ones(50000, dtype=torch.long)
        with keel_judge.judge() as report:  # one accumulator, whose roundings all go one way
            (F.embedding(step, torch.ones(2, 1).requires_grad_()) * 0.1).sum().backward()
        self.assertTrue(report.ok, report.text())
        self.check("added at indices", lambda x: torch.zeros(5, 4, dtype=x.dtype).index_add(
            0, torch.arange(300) % 5, x), torch.randn(300, 4))
        self.check("running sum", lambda x: x.cumsum(1), torch.randn(8, 1000))

    def test_windows(self):
        x = torch.randn(2, 3, 9, 7)
        self.check("resized", lambda x: F.interpolate(x, scale_factor=2.3, mode="bilinear"), x)
        self.check("adaptive", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), x)
        self.check("mean", lambda x: F.avg_pool2d(x, 3, 2, 1), x)
        self.check("largest", lambda x: F.max_pool2d(x, 3, 2, 1), x)
        self.check("one large pixel", nn.Conv2d(3, 4, 3, padding=1),
                   torch.where(torch.rand(2, 3, 16, 16) > 0.999, 1e3, torch.randn(2, 3, 16, 16)))
        self.check("1-d", nn.Conv1d(8, 6, 5, dilation=2, groups=2), torch.randn(3, 8, 40))

    def test_beyond_the_floats(self):
        self.check("nan", lambda x: (x * float("nan")).sum(1), torch.randn(8, 10))
        self.check("overflow", lambda x: (x * 1e30) * 1e10, torch.randn(8, 10))
        self.check("empty", lambda x: F.layer_norm(x, (4,)), torch.randn(0, 4))

    def test_one_pass_variance_is_named(self):
        """PyTorch's group norm of channels-last images takes mean(x^2) - mean^2."""
        x = (torch.randn(8, 64, 12, 12) + 1e4).to(memory_format=torch.channels_last)
        with keel_judge.judge() as report:
            nn.GroupNorm(8, 64)(x)
        self.assertTrue(report.ok, report.text())
        self.assertIn(("native_group_norm", "one-pass variance"), report.classes)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

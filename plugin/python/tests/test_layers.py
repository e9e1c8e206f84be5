"""Layers for hubs of kernels: what hubs ask of them, and that they compute what they stand for."""
import inspect
import pathlib
import sys
import types
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms.torch import layers  # noqa: E402


class ModelsNorm(nn.Module):
    """An RMS norm as language models have it."""

    def __init__(self, width, offset=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))
        self.variance_epsilon = self.eps = 1e-6
        self.offset = offset

    def forward(self, hidden_states):
        mean = hidden_states.square().mean(-1, keepdim=True)
        return (self.offset + self.weight) * hidden_states * torch.rsqrt(mean + self.eps)


class GatedNorm(ModelsNorm):
    """An RMS norm with a gate, before it as in Mamba-2, or after it."""

    def __init__(self, width, activation=None, group_size=None):
        super().__init__(width)
        self.activation = activation
        if group_size:
            self.group_size = group_size

    def forward(self, hidden_states, gate=None):
        factor = 1 if gate is None else getattr(nn.functional, self.activation or "silu")(gate)
        x = hidden_states if self.activation else hidden_states * factor
        parts = x.unflatten(-1, (-1, getattr(self, "group_size", x.shape[-1])))
        mean = parts.square().mean(-1, keepdim=True)
        y = self.weight * (parts * torch.rsqrt(mean + self.eps)).flatten(-2)
        return y * factor if self.activation else y


class Layers(unittest.TestCase):
    def test_they_have_a_forward_and_nothing_else(self):
        plain = {name for name, _ in inspect.getmembers(nn.Module)}
        for name in layers.__all__:
            layer = getattr(layers, name)
            added = {member for member, _ in inspect.getmembers(layer)} - plain
            self.assertEqual(added, {"can_torch_compile", "has_backward"}, name)
            self.assertIs(layer.__init__, nn.Module.__init__)
            self.assertEqual(len(inspect.signature(layer.forward).parameters),
                             3 if "Gated" in name else 2)

    def test_they_replace_a_forward(self):
        torch.manual_seed(1)
        for layer, module in ((layers.LayerNorm, nn.LayerNorm(8)),
                              (layers.LayerNorm, nn.LayerNorm((3, 8), elementwise_affine=False)),
                              (layers.RMSNorm, ModelsNorm(8)),
                              (layers.RMSNormZeroCentered, ModelsNorm(8, offset=1.0))):
            x = torch.randn(5, 3, 8, requires_grad=True)
            expected, inputs = module(x), [x, *module.parameters()]
            wanted = torch.autograd.grad(expected, inputs, x.detach())
            with self.subTest(layer=layer.__name__):
                module.forward = types.MethodType(layer.forward, module)
                for run in (module, torch.compile(module, backend="aot_eager", fullgraph=True)):
                    y = run(x)
                    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
                    for got, gradient in zip(torch.autograd.grad(y, inputs, x.detach()), wanted):
                        torch.testing.assert_close(got, gradient, rtol=1e-5, atol=1e-5)
                self.assertIn("_RowNorm", type(module(x).grad_fn).__name__)

    def test_they_take_a_gate(self):
        torch.manual_seed(2)
        x, z = torch.randn(2, 5, 3, 8, requires_grad=True)
        for layer, module, gates in (
                (layers.RMSNormGated, GatedNorm(8, "silu"), [z]),
                (layers.RMSNormGated, GatedNorm(8, "sigmoid"), [z]),
                (layers.MambaRMSNormGated, GatedNorm(8), [z, None]),
                (layers.MambaRMSNormGated, GatedNorm(8, group_size=2), [z, None])):
            theirs = module.forward
            module.forward = types.MethodType(layer.forward, module)
            for gate in gates:
                with self.subTest(layer=layer.__name__, gate=gate is not None):
                    inputs, expected = [x, module.weight], theirs(x, gate)
                    wanted = expected, *torch.autograd.grad(expected, inputs, x.detach())
                    for run in (module, torch.compile(module, backend="eager", fullgraph=True)):
                        y = run(x, gate)
                        found = y, *torch.autograd.grad(y, inputs, x.detach())
                        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
                    self.assertEqual(module(x.bfloat16(), gate).dtype, torch.bfloat16)

    def test_an_unknown_gate(self):
        module, x = GatedNorm(8, "relu"), torch.randn(3, 8)
        with self.assertRaisesRegex(ValueError, "gate: expected silu or sigmoid, got 'relu'"):
            layers.RMSNormGated.forward(module, x, x)


if __name__ == "__main__":
    unittest.main()

"""Compiled regions are judged by their twins: right ones have no finding, wrong ones are named, and
the distances that ops carry are bounds.

The compiler is a stand-in that runs the graph as it is, or with a fault; the long version also has
PyTorch's own."""
import contextlib
import copy
import unittest
from unittest import mock

import settings
import torch
import torch._inductor.compile_fx
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import keel_judge
from keel_judge import command
from keel_judge.measure import shares
from keel_judge.twin import regions
from keel_judge.twin.enclosures import Enclosed, Unknown, enclose

aten = torch.ops.aten
HAS_MODES = hasattr(TorchDispatchMode, "ignore_compile_internals")


def stand_in(fault=None, backward=False):
    """A compiler that runs the graph; `fault`: the op whose results it makes 0.1 % too large, or
    copy_, for the inputs that it writes to."""
    def compiler(module, inputs, **options):
        graph = copy.deepcopy(module.graph)
        if bool(options.get("is_backward")) == backward:
            for node in list(graph.nodes):
                if node.target is fault and fault is not aten.copy_.default:
                    with graph.inserting_after(node):
                        wrong = graph.call_function(aten.mul.Tensor, (node, 1.001))
                        node.replace_all_uses_with(wrong)
                        wrong.args = (node, 1.001)
        runs = torch.fx.GraphModule(module, graph)
        given = [n for n in graph.nodes if n.op == "placeholder"]
        written = [given.index(n.args[0]) for n in graph.nodes if n.target is aten.copy_.default]

        def run(arguments):
            results = runs(*arguments)
            for number in written if fault is aten.copy_.default else ():
                if arguments[number].is_floating_point():
                    arguments[number].mul_(1.001)
            return results
        run._boxed_call = True
        return run
    return mock.patch.object(torch._inductor.compile_fx, "compile_fx_inner", compiler)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 12)
        self.norm, self.rms = nn.LayerNorm(12), nn.RMSNorm(12)
        self.wide, self.narrow = nn.Linear(12, 24), nn.Linear(24, 12)

    def forward(self, tokens):
        x = self.table(tokens)
        scores = self.norm(x) @ self.norm(x).mT
        x = x + torch.softmax(scores, -1) @ x
        x = x + self.narrow(F.gelu(self.wide(self.rms(x))))
        return F.cross_entropy(x @ self.table.weight.T, tokens)


def steps(compiler, dtype=None, **options):
    """Two steps of the network, compiled inside, with an optimizer that runs eagerly."""
    torch.manual_seed(0)
    model, tokens = Network(), torch.randint(7, (9,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fast = torch.compile(model)
    wide = torch.autocast("cpu", dtype) if dtype else contextlib.nullcontext()
    with compiler, keel_judge.judge(model, compiled=True, **options) as report:
        for _ in range(2):
            optimizer.zero_grad()
            with wide:
                loss = fast(tokens)
            loss.backward()
            optimizer.step()
    return report


@unittest.skipUnless(HAS_MODES, "this PyTorch does not compile under a mode")
class Regions(unittest.TestCase):
    def rows(self, report):
        return {r.phase: r.verdict() for r in report.rows.values() if r.op.startswith("compiled")}

    def check_right(self, report):
        """The backward is one graph without stops: its bounds may be wide."""
        self.assertTrue(report.ok, report.text())
        self.assertEqual(self.rows(report)["forward"], "ok", report.table())
        self.assertIn(self.rows(report)["backward"], ("ok", "blind"), report.table())
        self.assertEqual(report.steps, 2)
        self.assertTrue(any(r.phase == "optimizer" for r in report.rows.values()))
        self.assertFalse(report.not_judged, report.text())

    def test_right(self):
        self.check_right(steps(stand_in()))

    def test_right_in_16_bits(self):
        report = steps(stand_in(), torch.bfloat16)
        self.assertTrue(report.ok, report.text())
        self.assertEqual(set(self.rows(report)), {"forward", "backward"})

    def test_a_short_backward_is_not_blind(self):
        torch.manual_seed(0)
        norm, x = nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8)), torch.randn(9, 16)
        with stand_in(), keel_judge.judge(norm, compiled=True) as report:
            torch.compile(norm)(x).backward(torch.randn(9, 8))
        self.assertEqual(self.rows(report), {"forward": "ok", "backward": "ok"}, report.table())

    def test_wrong_forward_is_named(self):
        report = steps(stand_in(aten.rsqrt.default))
        self.assertEqual({f.phase for f in report.findings}, {"forward"}, report.text())
        self.assertIn("compiled graph", report.findings[0].text())
        self.assertIn("test_compiled.py", report.findings[0].line)

    def test_wrong_backward_is_named(self):
        report = steps(stand_in(aten.mm.default, backward=True))
        self.assertEqual({f.phase for f in report.findings}, {"backward"}, report.text())

    def test_what_a_region_writes_is_judged(self):
        x = torch.randn(6, 5)
        for fault, names in ((None, set()), (aten.copy_.default, {"input"})):
            norm = nn.BatchNorm1d(5)
            with stand_in(fault), keel_judge.judge(compiled=True) as report:
                torch.compile(norm)(x)
            self.assertEqual({f.output.split()[0] for f in report.findings}, names, report.text())
            self.assertFalse(report.not_judged, report.text())

    def test_sizes_may_change(self):
        """One graph for several shapes: its sizes are inputs."""
        norm = nn.LayerNorm(6)
        fast = torch.compile(lambda x: norm(x).sum(0) / x.shape[0], dynamic=True)
        with stand_in(), keel_judge.judge(compiled=True) as report:
            for rows in (3, 8):
                fast(torch.randn(rows, 6))
        compiled = [r for r in report.rows.values() if r.op.startswith("compiled")]
        self.assertEqual([(r.calls, r.verdict()) for r in compiled], [(2, "ok")], report.table())
        self.assertFalse(report.not_judged, report.text())

    def test_the_program_goes_on(self):
        fast, x = torch.compile(lambda x: x.tanh()), torch.ones(3)
        broken = mock.patch.object(regions.Twin, "run", side_effect=ValueError("a mistake"))
        with stand_in(), broken, keel_judge.judge(compiled=True) as report:
            self.assertTrue(bool((fast(x) > 0.7).all()))
        self.assertIn("the judge failed: a mistake", report.text())

    def test_option_of_the_command(self):
        given = command.parser().parse_args(["--compiled", "train.py"])
        self.assertTrue(command.options_of(given)["compiled"])

    def test_unknown_ops_are_said(self):
        """Random numbers are not judged, and nothing that follows from them."""
        fast = torch.compile(lambda x: torch.tanh(F.dropout(x, 0.5) + x))
        with stand_in(), keel_judge.judge(compiled=True) as report:
            fast(torch.ones(50))
        self.assertTrue(report.ok, report.text())
        self.assertIn("random numbers", report.text())

    def test_eager_by_default(self):
        """Without the option the ops of a compiled function are judged one by one."""
        fast, x = torch.compile(lambda x: x.tanh()), torch.ones(3)
        with stand_in(), keel_judge.judge() as report:
            fast(x)
        self.assertEqual([r.op for r in report.rows.values()], ["tanh"])

    @unittest.skipUnless(settings.THOROUGH, "compiles C++")
    def test_inductor(self):
        self.check_right(steps(contextlib.nullcontext()))


# An op, the shapes of its floating inputs, and its other arguments.
CARRIED = [
    (aten.exp.default, [(40,)], ()), (aten.tanh.default, [(40,)], ()),
    (aten.rsqrt.default, [(40,)], ()), (aten.reciprocal.default, [(40,)], ()),
    (aten.log.default, [(40,)], ()), (aten.sqrt.default, [(40,)], ()),
    (aten.neg.default, [(40,)], ()), (aten.abs.default, [(40,)], ()),
    (aten.silu.default, [(40,)], ()), (aten.gelu.default, [(40,)], ()),
    (aten.sin.default, [(40,)], ()), (aten.erf.default, [(40,)], ()),
    (aten.pow.Tensor_Scalar, [(40,)], (3,)), (aten.pow.Tensor_Scalar, [(40,)], (-1.5,)),
    (aten.square.default, [(40,)], ()), (aten.relu.default, [(40,)], ()),
    (aten.add.Tensor, [(5, 8), (8,)], ()), (aten.sub.Tensor, [(8,), (5, 8)], ()),
    (aten.mul.Tensor, [(5, 8), (8,)], ()), (aten.div.Tensor, [(5, 8), (5, 1)], ()),
    (aten.mul.Tensor, [(5, 8)], (-3.0,)), (aten.maximum.default, [(5, 8), (8,)], ()),
    (aten.mm.default, [(5, 8), (8, 3)], ()), (aten.bmm.default, [(2, 5, 8), (2, 8, 3)], ()),
    (aten.addmm.default, [(3,), (5, 8), (8, 3)], ()),
    (aten.convolution.default, [(2, 3, 8), (4, 3, 3), (4,)],
     ([1], [1], [1], False, [0], 1)),
    (torch.ops.prims.fma.default, [(5, 8), (5, 8), (5, 8)], ()),
    (aten.sum.dim_IntList, [(5, 8)], ([1], True)), (aten.mean.dim, [(5, 8)], ([0],)),
    (aten.amax.default, [(5, 8)], ([1],)), (aten.var_mean.correction, [(5, 8)], ([1],)),
    (aten.permute.default, [(5, 8)], ([1, 0],)), (aten.view.default, [(5, 8)], ([40],)),
    (aten.select.int, [(5, 8)], (0, 2)),
]


class Distances(unittest.TestCase):
    def test_they_are_bounds_and_not_idle(self):
        """Inputs anywhere within their distances: no result is further off, and some are near."""
        draw = torch.Generator().manual_seed(3)
        for op, shapes, rest in CARRIED:
            with self.subTest(op=str(op)):
                inputs = [torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes]
                inputs = [x.abs() + 0.5 if needs_positive(op) else x for x in inputs]
                far = [0.05 * torch.rand(s, generator=draw, dtype=torch.float64) for s in shapes]
                given = [Enclosed(x, r, torch.float32) for x, r in zip(inputs, far)]
                bounds = tensors(enclose(op, (*given, *rest), {}, [torch.float32] * 2))
                share = 0.0
                for _ in range(200):
                    moved = [x + r * (2 * torch.rand(x.shape, generator=draw) - 1).sign()
                             for x, r in zip(inputs, far)]
                    for there, got in zip(bounds, tensors(op(*moved, *rest))):
                        error = (got - there.value).abs()
                        share = max(share, float(shares(error, there.distance).max()))
                self.assertLessEqual(share, 1 + 1e-9)
                self.assertGreater(share, 0.3)

    def test_comparisons_carry_doubts(self):
        """Where rounding may decide a comparison, a choice by it may be the other one."""
        x = Enclosed(torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([0.1, 0.1]),
                     torch.float32)
        choice = enclose(aten.gt.Scalar, (x, 1.05), {}, [torch.bool])
        self.assertEqual(choice.distance.tolist(), [True, False])
        a, b = (Enclosed(torch.full((2,), v, dtype=torch.float64), 0.0, torch.float32)
                for v in (5.0, 7.0))
        chosen = enclose(aten.where.self, (choice, a, b), {}, [torch.float32])
        self.assertEqual(chosen.value.tolist(), [7.0, 5.0])
        self.assertEqual(chosen.distance.tolist(), [2.0, 0.0])

    def test_intervals_beyond_a_domain_have_no_bound(self):
        x = Enclosed(torch.tensor([0.1], dtype=torch.float64), torch.tensor([0.2]), torch.float32)
        for op in (aten.log.default, aten.rsqrt.default, aten.reciprocal.default):
            self.assertEqual(enclose(op, (x,), {}, [torch.float32]).distance.tolist(),
                             [float("inf")])

    def test_whole_numbers_of_floats_are_unknown(self):
        x = Enclosed(torch.randn(4, dtype=torch.float64), 0.0, torch.float32)
        _, places = enclose(aten.max.dim, (x, 0), {}, [torch.float32, torch.int64])
        self.assertIsInstance(places, Unknown)


def needs_positive(op):
    return op in (aten.rsqrt.default, aten.reciprocal.default, aten.log.default,
                  aten.sqrt.default, aten.div.Tensor) or op is aten.pow.Tensor_Scalar


def tensors(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


if __name__ == "__main__":
    unittest.main()

"""Both judges give the same bounds for the same op on the same numbers: keel_judge, and the keel
program where it judges results of others (KEEL_PROGRAM names it). bench/results/judge.md says where
they differ, and why."""
import unittest

import numpy as np
import settings
import torch

from engines import KEEL, Subject
from keel_judge.call import Call, before_writing, named_arguments, results_of
from keel_judge.measure import rounded_bound
from keel_judge.rules import rule_of

aten = torch.ops.aten


F32 = torch.float32
SAME = 1e-6  # both are computed in float64
# Where bounds may differ: least and largest of keel_judge's over keel's, and the reason.
EQUAL = (1, 1)
NO_BIAS = (0.5, 1)  # keel counts the bias of a product as a term where there is none, too
STATE = (1 - 1e-4, 1)  # keel's variance has eps in it
ONE_LESS = (0.9, 1)  # keel takes means over n - 1, since its statistics may be unbiased
DIVIDED = (1, 1.8)  # 5 roundings for a division, which may be by an inverse; keel counts 1


def tensors(arrays):
    return [None if a is None else torch.as_tensor(a) for a in arrays]


def judged(func, *args):
    """(values, bounds) of an ATen op in float32."""
    given = named_arguments(func, args, {})
    before = before_writing(func, given)
    results = results_of(func, given, func(*args))
    expected = rule_of(func)(Call(func, before, results))
    return ([r.got.numpy() for r in results],
            [None if e is None else rounded_bound(e, r.got, 4) for e, r in zip(expected, results)])


class Op:
    """How an op of keel is called in ATen: `call` makes (func, *args) of its inputs. `ratios` of
    the bounds are by output; others are equal."""

    def __init__(self, call, ratio=EQUAL, more=None):
        self.call, self.ratios = call, {0: ratio} | (more or {})

    def run(self, inputs):
        func, *args = self.call(*tensors(inputs))
        return judged(func, *args)

    def values(self, *inputs):
        return self.run(inputs)[0]


def unary(name):
    return Op(lambda x: (getattr(aten, name).default, x))


def binary(name):
    return Op(lambda a, b: (getattr(aten, name).Tensor, a, b))


def product(a, b, bias=None):
    """As mm, bmm or addmm, with the factor transposed that keel takes so."""
    a = a.reshape(-1, a.shape[-1]) if b.dim() == 2 else a
    if a.shape[-1] != b.shape[-2]:
        a, b = (a, b.mT) if a.shape[-1] == b.shape[-1] else (a.mT, b)
    if bias is not None:
        return aten.addmm.default, bias, a, b
    return (aten.bmm.default if b.dim() == 3 else aten.mm.default), a, b


# The axes of the two nodes of keel's case, from (5, 7, 33).
AXES = {"": [0, 2], ".2": [1]}


def layer_norm(x, gain, bias):
    return aten.native_layer_norm.default, x, [x.shape[-1]], gain, bias, 1e-5


def layer_norm_backward(x, gain, mean, rstd, dy):
    rows = (*x.shape[:-1], 1)
    return (aten.native_layer_norm_backward.default, dy, x, [x.shape[-1]], mean.reshape(rows),
            rstd.reshape(rows), gain, torch.zeros_like(gain), [True] * 3)


def rms_norm(x, gain, bias):
    return aten._fused_rms_norm.default, x, [x.shape[-1]], gain, 1e-8


def group_sizes(x):
    return x.shape[0], x.shape[1], x[0, 0].numel(), 4


def group_norm(x, gain, bias):
    return aten.native_group_norm.default, x, gain, bias, *group_sizes(x), 1e-5


def group_norm_backward(x, gain, mean, rstd, dy):
    rows = x.shape[0], 4
    return (aten.native_group_norm_backward.default, dy, x, mean.reshape(rows),
            rstd.reshape(rows), gain, *group_sizes(x), [True] * 3)


def batch_norm(x, gain, bias, *states):
    mean, var, *_ = states
    return (aten.native_batch_norm.default, x, gain, bias, mean.clone(), var.clone(), True, 0.1,
            1e-5)


def batch_norm_backward(x, gain, mean, *more):
    rstd, dy, *_ = more
    return (aten.native_batch_norm_backward.default, dy, x, gain, None, None, mean, rstd, True,
            1e-5, [True] * 3)


def convolution(x, weight, bias):
    return aten.convolution.default, x, weight, bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 1


def convolution_dx(dy, weight):
    return (aten.convolution_backward.default, dy, torch.zeros_like(dy[:, :1]).expand(
        -1, weight.shape[1], -1, -1), weight, None, *WINDOWS, [True, False, False])


def convolution_dweight(x, dy):
    weight = torch.zeros(dy.shape[1], x.shape[1], 3, 3)
    return aten.convolution_backward.default, dy, x, weight, None, *WINDOWS, [False, True, False]


WINDOWS = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
CONVOLUTION = {"conv2d": Op(convolution), "conv2d_backward_input": Op(convolution_dx),
               "conv2d_backward_weight": Op(convolution_dweight)}
NORM = {"layer_norm": Op(layer_norm), "layer_norm_backward": Op(layer_norm_backward, ONE_LESS),
        "rms_norm": Op(rms_norm), "group_norm": Op(group_norm),
        "group_norm_backward": Op(group_norm_backward, ONE_LESS),
        "batch_norm": Op(batch_norm, more={4: STATE}),
        "batch_norm_backward": Op(batch_norm_backward, ONE_LESS)}
HAS_RMS_NORM = hasattr(aten, "_fused_rms_norm")  # several ops in PyTorch 2.6
BATCH_NORM = "batchnorm{running_unbiased=true}"
ELEMENTWISE = {name: unary(name) for name in (
    "exp", "log", "sqrt", "tanh", "sigmoid", "gelu", "softplus", "relu", "neg", "abs", "square")} \
    | {name: binary(name) for name in ("add", "sub", "mul", "div")} \
    | {"tanh_backward": Op(lambda dy, y: (aten.tanh_backward.default, dy, y)),
       "sigmoid_backward": Op(lambda dy, y: (aten.sigmoid_backward.default, dy, y)),
       "gelu_backward": Op(lambda dy, x: (aten.gelu_backward.default, dy, x)),
       "softplus_backward": Op(lambda dy, x: (aten.softplus_backward.default, dy, x, 1.0, 20.0))}
SOFTMAX = {
    "softmax": Op(lambda x: (aten._softmax.default, x, -1, False)),
    "softmax_backward": Op(lambda dy, y: (aten._softmax_backward_data.default, dy, y, -1, F32)),
    "log_softmax": Op(lambda x: (aten._log_softmax.default, x, -1, False)),
    "log_softmax_backward": Op(
        lambda dy, y: (aten._log_softmax_backward_data.default, dy, y, -1, F32))}


WINDOW = [3, 3], [2, 2], [0, 0], False, True, None  # of keel's small case
POOL = {"avg_pool2d": Op(lambda x: (aten.avg_pool2d.default, x, *WINDOW), DIVIDED),
        "avg_pool2d_backward": Op(lambda dy: (aten.avg_pool2d_backward.default, dy,
                                              torch.zeros(2, 3, 9, 8), *WINDOW), DIVIDED)}
EMBEDDING = {"embedding": Op(lambda table, ids: (aten.embedding.default, table, ids.long())),
             "embedding_backward": Op(lambda ids, dy: (aten.embedding_dense_backward.default, dy,
                                                       ids.long(), 19, -1, False))}


@unittest.skipUnless(KEEL, "KEEL_PROGRAM names no program")
class OneEngine(unittest.TestCase):
    def compare(self, words, case, ops):
        """Both bounds of every node of `ops`; returns how many there were."""
        subject = Subject(words, case)
        subject.fill({name: op.values for name, op in ops.items()})
        found, count = subject.bounds(), 0
        for name, fact in subject.facts.items():
            if fact["of"] in ops and name in found:
                self.compare_node(ops[fact["of"]], subject.inputs(name), (name, found[name]))
                count += 1
        self.assertGreater(count, 0)
        return count

    def compare_node(self, op, inputs, named):
        name, keels = named
        for place, own in enumerate(op.run(inputs)[1]):
            if own is None or place not in keels:
                continue
            own, keel = own.numpy().ravel(), keels[place].ravel()
            least, most = op.ratios.get(place, EQUAL)
            with self.subTest(node=name, output=place):
                self.assertEqual(own.size, keel.size)
                self.assertTrue(bool((own >= least * keel * (1 - SAME)).all()), (own, keel))
                self.assertTrue(bool((own <= most * keel * (1 + SAME)).all()), (own, keel))

    def test_elementwise(self):
        for name in ELEMENTWISE:
            if not name.endswith("_backward"):
                self.compare(["op", name], "small", ELEMENTWISE)

    def test_softmax(self):
        for name in ("softmax", "log_softmax"):
            self.compare(["op", name], "small", SOFTMAX)

    def test_products(self):
        """With a bias the counts are equal."""
        with_bias = Op(lambda a, b, c: product(a, b, c))
        without = Op(lambda a, b, c: product(a, b), NO_BIAS)
        subject = Subject(["op", "matmul"], "small")
        subject.fill({"matmul": Op(product).values})
        found = subject.bounds()
        for name, keels in found.items():
            if subject.facts[name]["of"] == "matmul":
                op = without if subject.inputs(name)[2] is None else with_bias
                self.compare_node(op, subject.inputs(name), (name, keels))

    def test_sums_and_maxima(self):
        for kind, func in (("sum", aten.sum.dim_IntList), ("mean", aten.mean.dim),
                           ("max", aten.amax.default)):
            subject = Subject(["op", kind], "small")
            subject.fill({})
            for node in AXES:
                subject.values[kind + node] += 1000
            found = subject.bounds()
            for node, axes in AXES.items():
                x, = tensors(subject.inputs(kind + node))
                self.compare_node(Op(lambda x, f=func, d=axes: (f, x, d)), [x],
                                  (kind + node, found[kind + node]))

    def test_norms(self):
        for norm, cases in (("layernorm", ("tokens",)), ("rmsnorm", ("tokens",)),
                            ("groupnorm{groups=4}", ("tokens", "images")),
                            (BATCH_NORM, ("tokens", "images"))):
            for case in cases if norm != "rmsnorm" or HAS_RMS_NORM else ():
                self.compare(["norm", norm], case, NORM)

    def test_logarithms_of_sums(self):
        """Cross entropy is one op of keel and several of ATen."""
        subject = Subject(["op", "cross_entropy"], "small")
        subject.fill({})
        x, _ = tensors(subject.inputs("cross_entropy"))
        own = judged(aten.logsumexp.default, x, [1], False)[1][0].numpy()
        self.assertTrue(np.allclose(own, subject.bounds()["cross_entropy"][2], rtol=SAME, atol=0))

    def test_pools_and_rows(self):
        self.assertEqual(self.compare(["op", "avg_pool2d"], "small", POOL), 2)
        self.assertEqual(self.compare(["op", "embedding"], "small", EMBEDDING), 2)

    def test_convolution(self):
        self.assertEqual(self.compare(["op", "conv2d"], "small", CONVOLUTION), 3)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()

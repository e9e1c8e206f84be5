"""The norms of networks of Hugging Face transformers, replaced by keel's: by convert_transformers,
and by the package `kernels`. Skipped where these packages are absent.

`test_transformers.py --errors` prints the errors as a table."""
import copy
import importlib.util
import logging
import pathlib
import pickle
import sys
import unittest
from typing import NamedTuple

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1]), str(HERE.parents[2] / "judge")]
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import layers  # noqa: E402

DTYPES = torch.float32, torch.bfloat16
LACKING = [name for name in ("transformers", "kernels") if not importlib.util.find_spec(name)]
if "transformers" not in LACKING:
    import transformers_cases as cases

logging.getLogger("kernels").setLevel(logging.ERROR)  # many layers have no kernel here


class Norm(nn.Module):
    """An RMS norm under a name by which transformers could have it."""

    def __init__(self, size=16, eps=1e-3):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(size)), eps

    def rms(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


class FirstRMSNorm(Norm):
    def forward(self, x):
        return self.weight * self.rms(x.float()).to(x.dtype)


class LastRMSNorm(Norm):
    def forward(self, x):
        return (self.weight * self.rms(x.float())).to(x.dtype)


class OffsetRMSNorm(Norm):
    def forward(self, x):
        return ((1 + self.weight.float()) * self.rms(x.float())).to(x.dtype)


class SigmoidRMSNormGated(Norm):
    def forward(self, x, gate=None):
        return (self.weight * self.rms(x.float()) * torch.sigmoid(gate.float())).to(x.dtype)


class GroupedRMSNormGated(Norm):
    group_size = 4

    def forward(self, x, gate):
        parts = (x * nn.functional.silu(gate)).unflatten(-1, (-1, self.group_size))
        return self.weight * self.rms(parts).flatten(-2)


class OutsideRMSNorm(Norm):
    """eps is added to the root."""

    def forward(self, x):
        return self.weight * x / (x.square().mean(-1, keepdim=True).sqrt() + self.variance_epsilon)


class SqueezingRMSNorm(Norm):
    def forward(self, x):
        return (self.weight * self.rms(x)).squeeze(1)


class FailingRMSNorm(Norm):
    def forward(self, x):
        raise RuntimeError("of no use on a CPU")


class Recognition(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_formulas(self):
        for kind, facts in ((FirstRMSNorm, {"offset": 0, "cast_first": True}),
                            (LastRMSNorm, {"offset": 0, "cast_first": False}),
                            (OffsetRMSNorm, {"offset": 1, "cast_first": False}),
                            (SigmoidRMSNormGated, {"gate": "sigmoid", "norm_first": True,
                                                   "groups": 1}),
                            (GroupedRMSNormGated, {"gate": "silu", "norm_first": False,
                                                   "groups": 4})):
            with self.subTest(kind=kind.__name__):
                old = kind()
                nn.init.normal_(old.weight)
                new = knn.convert_transformers(nn.Sequential(copy.deepcopy(old)))[0]
                self.assertEqual({name: getattr(new, name) for name in facts}, facts)
                given = torch.randn(2 if "gate" in facts else 1, 5, 3, 16)
                torch.testing.assert_close(new(*given), old(*given), rtol=2e-5, atol=2e-5)

    def test_what_stays(self):
        norms = FirstRMSNorm(), FirstRMSNorm().bfloat16(), FirstRMSNorm()
        norms[2].weight.requires_grad_(False)
        model = nn.Sequential(*norms, nn.LayerNorm(16), nn.RMSNorm(16), norms[0]).eval()
        parameters, state = list(model.parameters()), torch.get_rng_state()
        self.assertIs(knn.convert_transformers(model), model)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertEqual([type(m) for m in model],
                         [*[knn.RMSNorm] * 3, nn.LayerNorm, nn.RMSNorm, knn.RMSNorm])
        self.assertIs(model[0], model[5])
        self.assertFalse(model[0].training)
        self.assertEqual(model[0].variance_epsilon, 1e-3)  # a network may read it
        for own, old in zip(model.parameters(), parameters, strict=True):
            self.assertIs(own, old)
        pickle.loads(pickle.dumps(model))(torch.randn(3, 16))

    def test_the_meta_device(self):
        new = knn.convert_transformers(nn.Sequential(OffsetRMSNorm().to("meta")))[0]
        self.assertEqual((new.offset, new.weight.device.type), (1, "meta"))

    def test_refusals(self):
        for words, model, kind in (
                ("0.norm: expected an RMS norm, .* got another OutsideRMSNorm; "
                 r"skip=\('OutsideRMSNorm',\) leaves", nn.Sequential(nn.ModuleDict(
                     {"norm": OutsideRMSNorm()})), TypeError),
                ("0: expected an RMS norm", nn.Sequential(SqueezingRMSNorm()), TypeError),
                ("model: expected an RMS norm", FailingRMSNorm(), TypeError),
                ("0: expected an RMS norm", nn.Sequential(FirstRMSNorm(eps=None)), TypeError),
                ("a model with RMS norms of transformers, got Sequential with LayerNorm",
                 nn.Sequential(nn.LayerNorm(8)), ValueError),
                ("got Linear with no norms", nn.Linear(2, 2), ValueError),
                ("model: expected a module of PyTorch, got str", "llama", TypeError)):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                knn.convert_transformers(model)
        model = nn.Sequential(OutsideRMSNorm(), FirstRMSNorm())
        knn.convert_transformers(model, skip="OutsideRMSNorm")
        self.assertEqual([type(m) for m in model], [OutsideRMSNorm, knn.RMSNorm])

    @unittest.skipUnless("kernels" in LACKING, "kernels is installed")
    def test_kernels_are_absent(self):
        with self.assertRaisesRegex(ImportError, "kernel_mapping: expected the package kernels"):
            knn.kernel_mapping()


def by_kernels(model):
    """The model, kernelized for training. transformers names the layers of some classes itself."""
    from kernels import Mode, kernelize, replace_kernel_forward_from_hub, use_kernel_mapping
    for norm in cases.norms_of(model):
        if not hasattr(type(norm), "kernel_layer_name"):
            replace_kernel_forward_from_hub(type(norm), cases.LAYERS[type(norm).__name__])
    with use_kernel_mapping(knn.kernel_mapping(), inherit_mapping=False):
        kernelize(model, mode=Mode.TRAINING | Mode.TORCH_COMPILE, device="cpu")
    for norm in cases.norms_of(model):
        name = cases.LAYERS[type(norm).__name__]
        assert norm.forward.__func__ is getattr(layers, name).forward, name
    return model


def ways():
    return {"convert": knn.convert_transformers,
            **({} if "kernels" in LACKING else {"kernels": by_kernels})}


def errors(name, dtype):
    """For each way, how far loss, logits and gradients are from the library's or from float64."""
    ids, theirs = cases.tokens(), cases.network(name, dtype)
    exact = cases.step(knn.convert_transformers(copy.deepcopy(theirs).double()), ids)
    library = cases.step(theirs, ids)
    for way, replace in ways().items():
        own = cases.step(replace(copy.deepcopy(theirs)), ids)
        yield way, Errors(abs(own[1] - library[1]),
                          *[(run[0] - exact[0]).abs().max().item() for run in (own, library)],
                          *[distance(run[i], exact[i]) for i in (0, 2) for run in (own, library)])


class Errors(NamedTuple):
    """The difference of losses; the largest errors of logits, and the lengths of the errors of all
    logits and of all gradients, of keel and of the library."""

    loss: float
    worst: float
    library_worst: float
    logits: float
    library_logits: float
    gradients: float
    library_gradients: float


def distance(one, other):
    return torch.linalg.vector_norm(one - other).item()


def print_errors():
    print("| network | type | way | loss less the library's | logits: error, times the library's | "
          "gradients: error, times the library's |\n" + "|---" * 6 + "|")
    for name in cases.NAMES:
        for dtype in DTYPES:
            for way, e in errors(name, dtype):
                print(f"| {name} | {str(dtype).removeprefix('torch.')} | {way} | {e.loss:.1e} | "
                      f"{e.logits:.2e}, {e.logits / e.library_logits:.2f} | "
                      f"{e.gradients:.2e}, {e.gradients / e.library_gradients:.2f} |")


@unittest.skipIf("transformers" in LACKING, "transformers is not installed")
class Networks(unittest.TestCase):
    def test_losses_and_gradients(self):
        """The library's results and keel's are compared with the same network in float64.

        Both round the same products and sums, and their norms by themselves. The norms of keel
        round no oftener than the library's. So the squares of both errors have one part in common
        and another that is not larger for keel, whatever its direction: together at most twice the
        library's. Losses differ by no more than twice the errors of logits, because the magnitudes
        of cross-entropy's gradient add up to at most 2."""
        for name in cases.NAMES:
            for dtype in DTYPES:
                for way, e in errors(name, dtype):
                    with self.subTest(network=name, dtype=dtype, way=way):
                        self.assertLessEqual(e.loss, 2 * (e.worst + e.library_worst))
                        self.assertLessEqual(e.logits, 2**0.5 * e.library_logits)
                        self.assertLessEqual(e.gradients, 2**0.5 * e.library_gradients)
                        self.assertGreater(e.library_logits, 0)

    def test_no_graph_breaks(self):
        ids = cases.tokens()
        for name, way in (("llama", "convert"), ("qwen3", "kernels"), ("gemma", "kernels"),
                          ("mamba2", "convert")):
            if way in ways():
                with self.subTest(network=name, way=way):
                    torch._dynamo.reset()
                    model = ways()[way](cases.network(name))
                    run = torch.compile(model, backend="eager", fullgraph=True)
                    torch.testing.assert_close(run(input_ids=ids, use_cache=False).logits,
                                               model(input_ids=ids, use_cache=False).logits)

    def test_files_have_the_same_names(self):
        for name in cases.NAMES:
            theirs = cases.network(name)
            own = knn.convert_transformers(copy.deepcopy(theirs))
            self.assertEqual(list(own.state_dict()), list(theirs.state_dict()))

    @unittest.skipUnless(importlib.util.find_spec("keel_judge"), "keel_judge is not installed")
    def test_a_step_is_judged(self):
        import keel_judge
        keel_judge.declare("keel_norms::rms_norm", as_="rmsnorm", eps=1e-6,
                           backward="keel_norms::rms_norm_backward")
        ids = cases.tokens()
        for way, replace in ways().items():
            model = replace(cases.network("llama"))
            optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=False)
            with self.subTest(way=way), keel_judge.judge(model) as report:
                model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
                optimizer.step()
            self.assertTrue(report.ok, report.text())
            judged = {op for op, *_ in report.rows}
            self.assertLessEqual({"rms_norm", "rms_norm_backward"}, judged, report.text())


if __name__ == "__main__":
    if "--errors" in sys.argv:
        print_errors()
    else:
        unittest.main()

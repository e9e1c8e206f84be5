"""Every option of every module of keel_norms.torch arrives at keel's op, by the module and by its
function, as by keel_norms.numpy: set away from its default, it changes the numbers."""
import inspect
import pathlib
import sys
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import numpy as kn  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402
from keel_norms.torch import functional  # noqa: E402

ROWS = dict(eps=0.5, unbiased=True, eps_outside=True)
PLACE = {"device", "dtype", "affine", "gain", "bias", "process_group", "elementwise_affine"}
# The schedule of the limits begins at once and ends within the steps that the test takes.
SCHEDULE = {"r_start": 0, "r_end": 8, "d_start": 0, "d_end": 8}
# For each module: its arguments by place, options in use throughout, and a value of every option
# that is not its default. A tuple has options that the one needs to show.
CASES = {
    "LayerNorm": ((6,), {}, ROWS),
    "LayerNormSimple": ((6,), {}, ROWS),
    "RMSNorm": ((6,), {"eps": 1e-5}, {"eps": 0.5, "offset": 1.0}),
    "GroupNorm": ((2, 6), {}, ROWS),
    "InstanceNorm1d": ((6,), {"affine": True}, {"eps": 0.5}),
    "AdaNorm": ((6,), {}, {**ROWS, "C": 2.0, "k": 0.3, "detach": False}),
    "DetachNorm": ((6,), {}, {**ROWS, "detach_mean": False, "detach_variance": False}),
    "ScaleNorm": ((6,), {}, {"eps": 9.0}),
    "GroupScaling": ((2, 6), {}, {"eps": 0.5}),
    "BatchNorm1d": ((6,), {}, {"eps": 0.5, "momentum": 0.4}),
    "PNV": ((6,), {}, {"eps": 0.5, "keep": 0.6, "momentum": 0.4}),
    "PowerNorm": ((6,), {}, {"mode": "paper", "heads": 2, "warmup": 2, "alpha_f": 0.6,
                             "alpha_b": 0.6, "eps": 0.5, "pad_stats": True,
                             "scaling_eps": ({"heads": 2}, 0.5), "groups": 2}),
    "MABN": ((6,), {"m": 2, "warmup": 0, "clip_after": 0, "clip": 1.05},
             {"m": 3, "warmup": 2, "clip_after": 3, "keep": 0.6, "clip": 1.3, "eps": 0.5}),
    "BatchRenorm1d": ((6,), SCHEDULE,
                      {"eps": 0.5, "rate": 0.3, "momentum": 0.3, "r_max": 1.1, "d_max": 0.1,
                       "r_max_limit": 1.5, "d_max_limit": 1.0, "r_start": 2, "r_end": 3,
                       "d_start": 2, "d_end": 3, "updates": 50000}),
}
# What an option is called in keel's op, and its value there.
OP = {("PNV", "momentum"): lambda v: {"keep": 1 - v},
      ("BatchNorm1d", "momentum"): lambda v: {"keep": 1 - v},
      ("BatchRenorm1d", "momentum"): lambda v: {"rate": v},
      ("PowerNorm", "heads"): lambda v: {"groups": v}}
PYTORCHS = {"BatchNorm1d": {"running_unbiased": True}}


def in_op(name, options):
    """Options of a module as attributes of its op."""
    found = dict(PYTORCHS.get(name, {}))
    options = dict(options)
    updates = options.pop("updates", 100000)
    for option, value in options.items():
        if option in ("r_start", "r_end", "d_start", "d_end"):
            value = value * (updates / 100000)
        found.update(OP.get((name, option), lambda v, o=option: {o: v})(value))
    for unused in ("affine", "offset"):
        found.pop(unused, None)
    return found


def batches():
    """Four batches with padding, of a mean and a deviation that move."""
    random = np.random.default_rng(3)
    for step in range(4):
        x = random.standard_normal((4, 3, 6)) * (1 + 0.2 * step) + 0.4 * step
        yield x, random.standard_normal(x.shape)


MASK = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1]])


class Each(unittest.TestCase):
    def by_module(self, name, arguments, options):
        torch.manual_seed(7)
        module = getattr(knn, name)(*arguments, **options).double()
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, 0.5)
        self.first = {n: p.detach().numpy().copy() for n, p in module.named_parameters()}
        found = []
        for x, dy in batches():
            is_column = NORMS[module.norm].is_column
            x, dy = torch.tensor(x), torch.tensor(dy)
            if name in ("BatchNorm1d", "InstanceNorm1d", "GroupNorm"):
                x, dy = x.transpose(1, 2), dy.transpose(1, 2)
            x.requires_grad_()
            y = module(x, torch.tensor(MASK)) if is_column else module(x)
            found += [y, *torch.autograd.grad(y, [x, *module.parameters()], dy)]
            found += [b.clone() for n, b in module.named_buffers() if "batches" not in n]
        return [value.detach().numpy() for value in found]

    def by_function(self, name, arguments, options):
        """The same by keel_norms.numpy, whose options are the attributes of the op."""
        norm, attributes = getattr(knn, name).norm, in_op(name, options)
        gain = self.first.get("weight", self.first.get("gain"))
        if name == "RMSNorm":
            gain = gain + options.get("offset", 0.0)
        given = [value for value in (gain, self.first.get("bias")) if value is not None]
        if norm in ("group_norm", "group_scaling"):
            attributes["groups"] = arguments[0]
        facts, state, found = NORMS[norm], None, []
        if facts.states:
            state = kn.first_state(norm, 6, attributes.get("m", 16), np.float64)
        for x, dy in batches():
            how = dict(attributes)
            if norm == "group_norm":  # PyTorch's is over the area, too
                x, dy = x.transpose(0, 2, 1)[..., None], dy.transpose(0, 2, 1)[..., None]
            if state is not None:
                how.update(state=state, mask=MASK)
            step = getattr(kn, norm)(x, *given, **how)
            gradients = step.backward(dy)
            state = gradients.next_state or None
            y, dx = step.y, gradients.dx
            if norm == "group_norm":
                y, dx = y[..., 0], dx[..., 0]
            if name in ("BatchNorm1d", "InstanceNorm1d"):
                y, dx = y.transpose(0, 2, 1), dx.transpose(0, 2, 1)
            found += [y, dx, *(g for g in (gradients.dgain, gradients.dbias) if g is not None)]
            found += [v for n, v in (state or {}).items() if n != "step"]
        return found

    def same(self, got, expected):
        self.assertEqual(len(got), len(expected))
        for g, e in zip(got, expected):
            np.testing.assert_allclose(g.reshape(e.shape), e, rtol=1e-12, atol=1e-12)

    def test_it_changes_the_numbers_and_arrives(self):
        for name, (arguments, common, values) in CASES.items():
            for option, value in values.items():
                needed, value = value if isinstance(value, tuple) else ({}, value)
                before = {**common, **needed}
                with self.subTest(module=name, option=option):
                    plain = self.by_module(name, arguments, before)
                    self.same(plain, self.by_function(name, arguments, before))
                    changed = self.by_module(name, arguments, {**before, option: value})
                    self.same(changed, self.by_function(name, arguments,
                                                        {**before, option: value}))
                    self.assertTrue(any(not np.array_equal(a, b) for a, b in zip(plain, changed)
                                        ) or len(plain) != len(changed))

    def test_the_list_is_complete(self):
        for name in knn.__all__:
            if not name[0].isupper() or name in ("WeightNorm", "InstanceNorm2d", "BatchNorm2d",
                                                 "BatchRenorm2d") or name.startswith("Sync"):
                continue
            make = getattr(knn, name)
            known = list(inspect.signature(make).parameters)[len(CASES[name][0]):]
            lacking = set(known) - PLACE - CASES[name][2].keys() - {
                "track_running_stats", "cast_first"} - (
                    {"momentum"} if name == "InstanceNorm1d" else set())
            self.assertEqual(lacking, set(), name)

    def test_kin_pass_the_same_on(self):
        for name in ("PNV", "PowerNorm", "MABN", "BatchRenorm1d"):
            kin = {"BatchRenorm1d": ["SyncBatchRenorm", "BatchRenorm2d"]}.get(name, ["Sync" + name])
            arguments, common, values = CASES[name]
            for option, value in values.items():
                value = value[1] if isinstance(value, tuple) else value
                for other in kin:
                    one, two = (getattr(knn, n)(*arguments, **{**common, option: value})
                                for n in (name, other))
                    self.assertEqual(one.attributes, two.attributes)


class Functional(unittest.TestCase):
    """The functions of torch beside the modules, which have their options."""

    CALLS = {
        "LayerNorm": lambda x, **o: functional.layer_norm(x, (6,), **o),
        "AdaNorm": lambda x, **o: functional.ada_norm(x, 6, **o),
        "DetachNorm": lambda x, **o: functional.detach_norm(x, 6, **o),
        "GroupScaling": lambda x, **o: functional.group_scaling(x, 2, **o),
        "ScaleNorm": lambda x, **o: functional.scale_norm(x, torch.tensor([6**0.5]), **o),
    }

    def test_every_option(self):
        for name, call in self.CALLS.items():
            arguments, _, values = CASES[name]
            for option, value in values.items():
                x = torch.randn(5, 6, requires_grad=True)
                y = call(x, **{option: value})
                expected = getattr(knn, name)(*arguments, **{option: value})(x)
                with self.subTest(function=name, option=option):
                    torch.testing.assert_close(y, expected)
                    dy = torch.randn(5, 6)
                    torch.testing.assert_close(torch.autograd.grad(y, x, dy, retain_graph=True),
                                               torch.autograd.grad(expected, x, dy))


if __name__ == "__main__":
    unittest.main()

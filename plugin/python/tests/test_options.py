"""Every option of every module of keel_norms.torch arrives at keel's op, by the module and by its
function, as by keel_norms.numpy: set away from its default, it changes the numbers."""
import inspect
import pathlib
import sys
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import option_cases  # noqa: E402

from keel_norms import numpy as kn  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms._library import ops  # noqa: E402
from keel_norms._norms import NORMS, SUMS  # noqa: E402
from keel_norms.torch import _autograd, functional  # noqa: E402

ROWS = dict(eps=0.5, unbiased=True, eps_outside=True)
PLACE = {"device", "dtype", "affine", "gain", "bias", "process_group", "elementwise_affine",
         "alpha_init", "shift_init", "a_init", "b_init"}
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
    "SeeDNorm": ((6,), {}, {"eps": 0.5}),
    "DyT": ((6,), {}, {}),
    "Derf": ((6,), {}, {}),
    "GroupScaling": ((2, 6), {}, {"eps": 0.5}),
    "BatchNorm1d": ((6,), {}, {"eps": 0.5, "momentum": 0.4}),
    "RegularizedBatchNorm": ((6,), {}, {"eps": 0.5, "keep": 0.6, "momentum": 0.4,
                                        "mean_penalty": 2.0, "deviation_penalty": 1.5}),
    "PNV": ((6,), {}, {"eps": 0.5, "keep": 0.6, "momentum": 0.4}),
    "PowerNorm": ((6,), {}, {"mode": "paper", "heads": 2, "warmup": 2, "alpha_f": 0.6,
                             "alpha_b": 0.6, "eps": 0.5, "pad_stats": True,
                             "scaling_eps": ({"heads": 2}, 0.5), "groups": 2}),
    "MABN": ((6,), {"m": 2, "warmup": 0, "clip_after": 0, "clip": 1.05},
             {"m": 3, "warmup": 2, "clip_after": 3, "keep": 0.6, "clip": 1.3, "eps": 0.5}),
    "UnifiedNorm": ((6,), {"m": 2, "warmup": 0, "clip_after": 0, "clip": 1.05},
                    {"m": 4, "warmup": 2, "clip_after": 3, "filter": False, "keep": 0.6,
                     "clip": 1.3, "eps": 0.5}),
    "BatchRenorm1d": ((6,), SCHEDULE,
                      {"eps": 0.5, "rate": 0.3, "momentum": 0.3, "r_max": 1.1, "d_max": 0.1,
                       "r_max_limit": 1.5, "d_max_limit": 1.0, "r_start": 2, "r_end": 3,
                       "d_start": 2, "d_end": 3, "updates": 50000}),
}
# The name of an option in keel's op, and its value there.
OP = {("PNV", "momentum"): lambda v: {"keep": 1 - v},
      ("RegularizedBatchNorm", "momentum"): lambda v: {"keep": 1 - v},
      ("BatchNorm1d", "momentum"): lambda v: {"keep": 1 - v},
      ("BatchRenorm1d", "momentum"): lambda v: {"rate": v},
      ("PowerNorm", "heads"): lambda v: {"groups": v}}
# Attributes of the op that differ from its defaults where an option is not given.
OWN = {"BatchNorm1d": {"running_unbiased": True},
       "RegularizedBatchNorm": {"mean_penalty": 0.1, "deviation_penalty": 0.01}}


def in_op(name, options):
    """Options of a module as attributes of its op."""
    found = dict(OWN.get(name, {}))
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
        given += [self.first[name] for name in NORMS[norm].more]
        if norm in ("group_norm", "group_scaling"):
            attributes["groups"] = arguments[0]
        facts, state, found = NORMS[norm], None, []
        if facts.states:
            state = kn.first_state(norm, 6, attributes.get("m"), np.float64)
        for x, dy in batches():
            how = dict(attributes)
            if norm == "group_norm":  # PyTorch's is over the area, too
                x, dy = x.transpose(0, 2, 1)[..., None], dy.transpose(0, 2, 1)[..., None]
            if state is not None:
                how.update(state=state, mask=MASK)
            step = getattr(kn, norm)(x, *given, **how)
            gradients = step.backward(dy)
            state = gradients.next_state or None
            y, (dx, *others) = step.y, option_cases.gradients(norm, gradients)
            if norm == "group_norm":
                y, dx = y[..., 0], dx[..., 0]
            if name in ("BatchNorm1d", "InstanceNorm1d"):
                y, dx = y.transpose(0, 2, 1), dx.transpose(0, 2, 1)
            found += [y, dx, *others]
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
            if not name[0].isupper() or name in (
                    "WeightNorm", "InstanceNorm2d", "BatchNorm2d", "BatchRenorm2d", "GatedRMSNorm",
                    "QKNorm", "AdaLayerNormZero") or name.startswith("Sync"):
                continue
            make = getattr(knn, name)
            known = list(inspect.signature(make).parameters)[len(CASES[name][0]):]
            lacking = set(known) - PLACE - CASES[name][2].keys() - {
                "track_running_stats", "cast_first"} - (
                    {"momentum"} if name == "InstanceNorm1d" else set())
            self.assertEqual(lacking, set(), name)

    def test_options_that_leave_parameters_out(self):
        for name, (arguments, _, _) in CASES.items():
            make = getattr(knn, name)
            known = inspect.signature(make).parameters
            for option in {"affine", "gain", "bias", "elementwise_affine", "track_running_stats"}:
                if option in known:
                    others = {"affine": True} if option == "bias" and "affine" in known else {}
                    one, two = (make(*arguments, **{**others, option: value}).state_dict().keys()
                                for value in (True, False))
                    with self.subTest(module=name, option=option):
                        self.assertGreater(one, two)

    def test_cast_first(self):
        x, weight = torch.randn(40, 6).bfloat16(), torch.linspace(0.5, 1.5, 6).bfloat16()
        found = []
        for cast_first in (False, True):
            norm = knn.RMSNorm(6, eps=1e-6, cast_first=cast_first, dtype=torch.bfloat16)
            torch.nn.utils.vector_to_parameters(weight, norm.parameters())
            found.append(norm(x))
        expected = torch.nn.functional.rms_norm(x, (6,), eps=1e-6) * weight
        self.assertTrue(torch.equal(found[1], expected))
        self.assertFalse(torch.equal(found[0], found[1]))

    def test_kin_pass_the_same_on(self):
        for name in ("PNV", "PowerNorm", "MABN", "UnifiedNorm", "BatchRenorm1d"):
            kin = {"BatchRenorm1d": ["SyncBatchRenorm", "BatchRenorm2d"]}.get(name, ["Sync" + name])
            arguments, common, values = CASES[name]
            for option, value in values.items():
                value = value[1] if isinstance(value, tuple) else value
                for other in kin:
                    one, two = (getattr(knn, n)(*arguments, **{**common, option: value})
                                for n in (name, other))
                    self.assertEqual(one.attributes, two.attributes)


class Functional(unittest.TestCase):
    """The functions of torch beside those of NumPy."""

    GAIN = torch.linspace(0.5, 1.5, 6, dtype=torch.float64)
    CALLS = {
        "layer_norm": lambda x, g, **o: functional.layer_norm(x, (6,), g, g - 1, **o),
        "rms_norm": lambda x, g, eps=1e-8, offset=0.0: functional.rms_norm(
            x, (6,), g, eps, offset=offset),
        "rms_norm_cast_first": lambda x, g, eps=1e-8, offset=0.0: functional.rms_norm_cast_first(
            x, (6,), g, eps, offset=offset),
        "ada_norm": lambda x, g, **o: functional.ada_norm(x, 6, **o),
        "detach_norm": lambda x, g, **o: functional.detach_norm(x, 6, **o),
        "scale_norm": lambda x, g, **o: functional.scale_norm(x, g[:1], **o),
        "seed_norm": lambda x, g, **o: functional.seed_norm(x, g, g + 1, g - 1, **o),
        "dyt": lambda x, g, **o: functional.dyt(x, g[:1], g, g - 1, **o),
        "derf": lambda x, g, **o: functional.derf(x, g[:1], g[1:2] - 1, g, g - 1, **o),
        "group_scaling": lambda x, g, **o: functional.group_scaling(x, **{"num_groups": 2, **o}),
        "group_norm": lambda x, g, **o: functional.group_norm(
            x, **{"num_groups": 2, **o}, weight=g, bias=g - 1),
        "instance_norm": lambda x, g, **o: functional.instance_norm(
            x.T.unsqueeze(0), g, g - 1, **o).squeeze(0).T,
        "weight_norm": lambda x, g, dim=0, **o: functional.weight_norm(
            x, g[:5] if dim == 0 else g, dim, **o),
    }
    NAMES = {"groups": "num_groups", "by_column": "dim"}

    def by_numpy(self, norm, x, dy, **options):
        g = self.GAIN.numpy()
        if norm == "weight_norm":
            step = kn.weight_norm(x, g if options.get("by_column") else g[:5], **options)
            return step.w, step.backward(dy)[0]
        if norm == "instance_norm":
            x, dy = x[None], dy[None]
        affine = {"layer_norm": (g, g - 1), "group_norm": (g, g - 1), "instance_norm": (g, g - 1),
                  "rms_norm": (g,), "scale_norm": (g[:1],),
                  "seed_norm": (g, g + 1, g - 1)}.get(norm, ())
        step = getattr(kn, norm)(x, *affine, **options)
        return step.y.reshape(5, 6), step.backward(dy).dx.reshape(5, 6)

    def test_every_option(self):
        random = np.random.default_rng(6)
        x, dy = random.standard_normal((5, 6)), random.standard_normal((5, 6))
        for name, call in self.CALLS.items():
            norm = "rms_norm" if name == "rms_norm_cast_first" else name
            defaults = ops()[norm].defaults
            for option, text in defaults.items():
                base = {"groups": 2} if "groups" in defaults else {}
                now = {"true": True, "false": False}.get(text, text)
                value = 3 if option == "groups" else option_cases.values(norm, option, now)[0]
                if option == "axes":
                    continue  # normalized_shape
                theirs = {self.NAMES.get(option, option): 1 if option == "by_column" else value}
                given = torch.tensor(x, requires_grad=True)
                y = call(given, self.GAIN, **theirs)
                dx, = torch.autograd.grad(y, given, torch.tensor(dy))
                with self.subTest(function=name, option=option):
                    plain = self.by_numpy(norm, x, dy, **base)
                    expected = self.by_numpy(norm, x, dy, **{**base, option: value})
                    self.assertTrue(option_cases.differ(plain, expected))
                    for got, wanted in zip((y, dx), expected, strict=True):
                        np.testing.assert_allclose(got.detach(), wanted, rtol=1e-12, atol=1e-12)

    def test_the_offset_of_a_gain(self):
        x = torch.randn(5, 6)
        for name in ("rms_norm", "rms_norm_cast_first"):
            call = self.CALLS[name]
            torch.testing.assert_close(call(x, self.GAIN.float() - 1, offset=1.0),
                                       call(x, self.GAIN.float()))

    def test_the_offset_of_a_narrow_gain_is_added_in_float32(self):
        """2^-9 would be lost beside 1 in bfloat16."""
        x, weight = torch.randn(5, 6), torch.full((6,), 2.0 ** -9)
        torch.testing.assert_close(
            functional.rms_norm(x, (6,), weight.bfloat16(), 1e-6, offset=1.0),
            functional.rms_norm(x, (6,), weight + 1, 1e-6), rtol=1e-6, atol=0)

    def test_the_list_is_complete(self):
        known = {name for name, value in vars(functional).items()
                 if inspect.isfunction(value) and not name.startswith("_")
                 and (name in NORMS or name.endswith(("_norm", "_scaling", "_first")))}
        # Functions of two tensors have tests of their own.
        others = {"column_norm", "gated_rms_norm", "grouped_rms_norm", "modulated_layer_norm",
                  *SUMS}
        self.assertEqual(known - others, self.CALLS.keys())


class Table(unittest.TestCase):
    """Every option in the library's table, by the calls that modules and functions share."""

    def run_in_torch(self, norm, attributes):
        found, state = [], {}
        names = ops()[norm].inputs
        if norm in NORMS and NORMS[norm].states:
            first = kn.first_state(norm, 6, attributes.get("m"), np.float64)
            state = {name: torch.tensor(value) for name, value in first.items()}
        for x, affine, dy in option_cases.inputs(norm, attributes):
            given = [torch.tensor(value, requires_grad=True) for value in (x, *affine)]
            if state:
                outputs = functional.column_norm(
                    norm, given[0], {**dict(zip(("gain", "bias"), given[1:])), **state,
                                     "mask": torch.tensor(option_cases.MASK)}, attributes)
                y = outputs["y"]
            else:
                self.assertLessEqual(len(given), len(names))
                y = _autograd.row(norm, tuple(attributes.items()), *given)
            found += [y, *torch.autograd.grad(y, given, torch.tensor(dy))]
            for name, facts in NORMS[norm].states.items() if state else ():
                following = outputs.get(facts.next)
                if following is not None and following.shape == state[name].shape:
                    state[name] = following
            found += [value.clone() for value in state.values()]
        return [value.detach().numpy() for value in found]

    def test_every_option_arrives(self):
        for norm, option, attributes, expected in option_cases.cases():
            if norm == "instance_norm":
                continue  # here it is a group norm; Functional has it
            with self.subTest(norm=norm, option=option):
                for got, wanted in zip(self.run_in_torch(norm, attributes), expected, strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


if __name__ == "__main__":
    unittest.main()

"""How modules of keel_norms.torch are made: their types, devices and options, and those of the
modules that they replace."""
import inspect
import os
import pathlib
import pydoc
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError, _library  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import functional  # noqa: E402

COLUMNS = (knn.RegularizedBatchNorm, knn.PNV, knn.PowerNorm, knn.MABN, knn.UnifiedNorm,
           knn.SyncUnifiedNorm,
           knn.BatchRenorm1d, knn.BatchRenorm2d, knn.SyncPNV,
           knn.SyncPowerNorm, knn.SyncMABN, knn.SyncBatchRenorm)
PYTORCHS = (knn.LayerNorm, knn.RMSNorm, knn.BatchNorm1d, knn.BatchNorm2d, knn.SyncBatchNorm,
            lambda width, **place: knn.GroupNorm(2, width, **place),
            lambda width, **place: knn.InstanceNorm1d(width, affine=True, **place))


# The arguments by place of every module of one x.
OTHERS = ("WeightNorm", "AdaLayerNormZero", "GatedRMSNorm", "QKNorm")
ARGUMENTS = {getattr(knn, name): (2, 8) if name in ("GroupNorm", "GroupScaling") else (8,)
             for name in knn.__all__ if name[0].isupper() and name not in OTHERS}


class Constructors(unittest.TestCase):
    def test_a_device_and_a_type(self):
        for make in (*COLUMNS, *PYTORCHS, knn.ScaleNorm):
            module = make(8, device="meta", dtype=torch.float64)
            for tensor in (*module.parameters(), *module.buffers()):
                self.assertEqual(tensor.device.type, "meta")
                if tensor.is_floating_point():
                    self.assertEqual(tensor.dtype, torch.float64, make)

    def test_a_default_type_of_float64(self):
        torch.set_default_dtype(torch.float64)
        try:
            norms = [make(8) for make in COLUMNS] + [make(8) for make in PYTORCHS[:3]]
            norms.append(knn.ScaleNorm(8))
            for norm in norms:
                x = torch.randn(6, 8, requires_grad=True)
                with self.subTest(norm=norm):
                    y = norm(x)
                    y.sum().backward()
                    self.assertEqual((y.dtype, x.grad.dtype), (torch.float64, torch.float64))
        finally:
            torch.set_default_dtype(torch.float32)

    def test_states_of_narrow_modules_are_float32(self):
        for make in COLUMNS:
            norm = make(8, dtype=torch.bfloat16)
            self.assertEqual(norm.weight.dtype, torch.bfloat16)
            for buffer in norm.buffers():
                self.assertIn(buffer.dtype, (torch.float32, torch.int32))
            self.assertEqual(norm(torch.randn(6, 8).bfloat16()).dtype, torch.bfloat16)

    def test_a_misspelt_option_is_named(self):
        for make, arguments in ARGUMENTS.items():
            name = make.__name__
            # Curves have no eps.
            wrong, right = (("alpha_int", "alpha_init") if name in ("DyT", "Derf") else
                            ("epz", "eps"))
            with self.assertRaisesRegex(
                    TypeError, f"^{name}: unknown option '{wrong}', nearest '{right}'; "
                    f"expected {name}\\("):
                make(*arguments, **{wrong: 3})
        with self.assertRaisesRegex(TypeError, "unknown option 'training'"):
            knn.PowerNorm(8, training=True, mode="release")

    def test_options_are_given_once_and_by_name(self):
        for call, words in (
                (lambda: knn.PowerNorm(8, num_features=8), "multiple values for .*'num_features'"),
                (lambda: knn.PowerNorm(), "missing .*'num_features'"),
                (lambda: knn.PowerNorm(8, False), "got 2 arguments by place, options have names"),
                (lambda: knn.AdaNorm(8, 2.0, 0.1), "got 3 arguments by place"),
                (lambda: knn.GroupScaling(64), "missing .*'num_channels'"),
                (lambda: knn.PNV(8, keep=0.9, momentum=0.1), "keep and momentum are one option"),
                (lambda: knn.SyncPNV(8, keep=0.9, momentum=0.1), "keep and momentum are one"),
                (lambda: knn.BatchRenorm1d(8, rate=.1, momentum=.1), "rate and momentum are one"),
                (lambda: knn.PowerNorm(8, heads=2, groups=2), "heads and groups are one option"),
                (lambda: knn.PNV(8, momentum=None), "momentum: expected a number, got None"),
                (lambda: knn.MABN(8, centralize=True), "unknown option 'centralize'")):
            with self.subTest(words=words), self.assertRaisesRegex(TypeError, words):
                call()

    def test_the_first_arguments_are_sizes(self):
        for make, arguments in ARGUMENTS.items():
            first = list(inspect.signature(make).parameters)[:len(arguments)]
            self.assertEqual(first, {1: [first[0]], 2: ["num_groups", "num_channels"]}[len(first)])
            self.assertIn(first[0], ("normalized_shape", "num_features", "num_groups"))
        for size in (0.3, "512", (2, 0.5), ()):
            with self.assertRaisesRegex(TypeError, "normalized_shape: expected a size"):
                knn.AdaNorm(size)
        with self.assertRaisesRegex(ValueError, "num_channels: expected a multiple of .* 3, got 8"):
            knn.GroupScaling(3, 8)

    def test_other_names_of_options(self):
        x = torch.randn(6, 8)
        for one, other in ((knn.PNV(8, keep=0.75), knn.PNV(8, momentum=0.25)),
                           (knn.SyncPNV(8, keep=0.75), knn.SyncPNV(8, momentum=0.25)),
                           (knn.BatchRenorm1d(8, rate=0.2), knn.BatchRenorm1d(8, momentum=0.2)),
                           (knn.PowerNorm(8, heads=2), knn.PowerNorm(8, groups=2))):
            self.assertTrue(torch.equal(one(x), other(x)))
            for name, value in one.state_dict().items():
                self.assertTrue(torch.equal(value, other.state_dict()[name]), name)

    def test_parts_that_are_left_out(self):
        for make in COLUMNS:
            for options, names in (({"gain": False}, ["bias"]), ({"bias": False}, ["weight"]),
                                   ({"affine": False}, [])):
                norm = make(8, **options)
                self.assertEqual([name for name, _ in norm.named_parameters()], names)
                norm(torch.randn(6, 8, requires_grad=True)).sum().backward()

    def test_a_size_that_does_not_fit_is_told_as_the_user_sees_it(self):
        for make, arguments in ARGUMENTS.items():
            is_first = issubclass(make, (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.GroupNorm))
            shape = {True: (6, 9, 4), False: (6, 9)}[is_first]
            shape = (*shape, 4) if issubclass(make, nn.InstanceNorm2d) else shape
            shape = (*shape, 3, 3) if make is knn.BatchNorm2d else shape
            options = {"affine": True} if issubclass(make, nn.InstanceNorm1d | nn.InstanceNorm2d
                                                     ) else {}
            with self.subTest(make=make), self.assertRaises(KeelError) as caught:
                make(*arguments, **options)(torch.randn(shape))
            words = str(caught.exception)
            self.assertRegex(words, r"x: expected .*\b8\b.*, got \(6, 9")
            self.assertNotIn("gain", words)
            if list(make(*arguments, **options).parameters()):
                self.assertRegex(words, r"weight of \(8,\)|normalized_shape of \(8,\)")
        with self.assertRaisesRegex(KeelError, r"weight: expected \(9\), got \(8\)"):
            functional.layer_norm(torch.randn(6, 9), (9,), torch.ones(8))

    def test_help_shows_options_and_defaults(self):
        words = pydoc.render_doc(knn.PowerNorm, renderer=pydoc.plaintext)
        self.assertIn("num_features, *, ", words)
        for text in ("warmup=0", "alpha_f=0.9", "mode='release'", "heads=0"):
            self.assertIn(text, words)
        self.assertIn("process_group=None", pydoc.render_doc(knn.SyncPowerNorm))

    def test_help_says_what_every_option_of_keel_means(self):
        """By name, in the words of the class or of one that it is made from."""
        for name in knn.__all__:
            make = getattr(knn, name)
            if not inspect.isclass(make):
                continue
            theirs = getattr(nn, name, None)
            known = set(inspect.signature(theirs).parameters) if theirs else {"device", "dtype"}
            words = " ".join(f"{base.__doc__} {base.__init__.__doc__}" for base in make.__mro__
                             if base.__module__.startswith("keel_norms"))
            own = [option for option, a in inspect.signature(make).parameters.items()
                   if a.kind is a.KEYWORD_ONLY and option not in known]
            own += getattr(make.__init__, "other_names", ())
            if name.startswith(("AdaNorm", "DetachNorm")):
                words += knn.LayerNormSimple.__doc__
            elif name == "GroupNorm":
                words += knn.LayerNorm.__doc__
            for option in own:
                with self.subTest(module=name, option=option):
                    self.assertRegex(words, rf"`{option}`|\b{option}\b")

    def test_an_area_of_one_element(self):
        for norm, old, shape in ((knn.InstanceNorm1d(8), nn.InstanceNorm1d(8), (4, 8, 1)),
                                 (knn.InstanceNorm2d(8), nn.InstanceNorm2d(8), (4, 8, 1, 1)),
                                 (functional.instance_norm, nn.functional.instance_norm, (4, 8))):
            for run in (norm, old):
                with self.assertRaisesRegex(ValueError, "more than 1"):
                    run(torch.randn(shape))


class Replaced(unittest.TestCase):
    def test_buffers_of_another_type_are_not_taken(self):
        for target in (knn.BatchRenorm1d, knn.PowerNorm, knn.MABN, knn.PNV):
            old = nn.BatchNorm1d(8)
            old(torch.randn(6, 8) + 3)
            new = knn.convert(old, {nn.BatchNorm1d: target})
            with self.subTest(target=target.__name__):
                fresh = target(8).state_dict()
                for name, value in new.state_dict().items():
                    self.assertEqual(value.dtype, fresh[name].dtype, name)
                    self.assertTrue(torch.equal(value, fresh[name]), name)
                new(torch.randn(6, 8)).sum().backward()
                self.assertIs(new.weight, old.weight)

    def test_a_batch_norms_buffers_are_the_same_objects(self):
        old = nn.BatchNorm1d(8)
        for new in (knn.convert(old, {nn.BatchNorm1d: knn.BatchNorm1d}),
                    knn.convert_sync_batchnorm(old)):
            for name, buffer in old.named_buffers():
                self.assertIs(new.get_buffer(name), buffer)

    def test_device_and_type_are_those_of_the_old_module(self):
        for place in ({"device": "meta"}, {"dtype": torch.float64}, {"dtype": torch.bfloat16}):
            for make, target in ((nn.LayerNorm, knn.PowerNorm), (nn.BatchNorm1d, knn.BatchRenorm1d),
                                 (nn.LayerNorm, lambda old: knn.ScaleNorm(8))):
                old = make(8, **place)
                new = knn.convert(old, {make: target})
                wide = torch.promote_types(old.weight.dtype, torch.float32)
                for tensor in (*new.parameters(), *new.buffers()):
                    self.assertEqual(tensor.device, old.weight.device)
                    if tensor.is_floating_point():
                        self.assertIn(tensor.dtype, (old.weight.dtype, wide))
                y = new(torch.randn(6, 8).to(old.weight))
                self.assertEqual((y.dtype, y.device), (old.weight.dtype, old.weight.device))

    def test_options_of_the_old_module_arrive(self):
        given = {"eps": 0.5, "momentum": 0.3, "affine": False, "track_running_stats": False}
        names = (*given, "elementwise_affine", "num_groups", "normalized_shape")
        for old, target in ((nn.BatchNorm1d(8, **given), knn.BatchNorm1d),
                            (nn.BatchNorm2d(8, **given), knn.BatchNorm2d),
                            (nn.BatchNorm1d(8, **given), None),
                            (nn.InstanceNorm1d(8, **given), knn.InstanceNorm1d),
                            (nn.GroupNorm(4, 8, eps=0.5, affine=False), knn.GroupNorm),
                            (nn.LayerNorm((2, 4), 0.5, elementwise_affine=False), knn.LayerNorm),
                            (nn.RMSNorm(8, eps=0.5, elementwise_affine=False), knn.RMSNorm)):
            with self.subTest(old=old, target=target):
                new = (knn.convert_sync_batchnorm(old) if target is None
                       else knn.convert(old, {type(old): target}))
                for name in names:
                    self.assertEqual(getattr(new, name, None), getattr(old, name, None), name)
        group = object()
        self.assertIs(knn.convert_sync_batchnorm(nn.BatchNorm1d(8), group).process_group, group)

    def test_no_bias_is_invented(self):
        cases = [(nn.LayerNorm(8, bias=False), knn.LayerNorm),
                 (nn.LayerNorm(8, bias=False), knn.PowerNorm),
                 (nn.RMSNorm(8), knn.LayerNorm), (nn.RMSNorm(8), knn.PowerNorm),
                 (nn.GroupNorm(2, 8), knn.GroupNorm), (nn.BatchNorm1d(8), knn.BatchNorm1d),
                 (nn.BatchNorm1d(8), knn.BatchRenorm1d), (nn.BatchNorm1d(8), None),
                 (nn.InstanceNorm1d(8, affine=True), knn.InstanceNorm1d)]
        for old, target in cases:
            old.bias = None  # as bias=False does, which PyTorch 2.10 does not have everywhere
            names = {name for name, _ in old.named_parameters()}
            with self.subTest(old=old, target=target):
                new = (knn.convert_sync_batchnorm(old) if target is None
                       else knn.convert(old, {type(old): target}))
                self.assertEqual({name for name, _ in new.named_parameters()}, names)
                self.assertIs(new.weight, old.weight)
                x = torch.randn(4, 8, 5) if "Instance" in type(old).__name__ else torch.randn(4, 8)
                new(x).sum().backward()


class Loading(unittest.TestCase):
    def test_a_library_that_the_loader_finds_brings_its_kernels(self):
        """By its bare name the path of the library does not say where the others lie."""
        folder = _library.folder()
        kernels = pathlib.Path(folder) / "libkeel_norm_torch.so"
        if not kernels.exists():
            self.skipTest("no libkeel_norm_torch.so")
        with tempfile.TemporaryDirectory() as place:
            package = pathlib.Path(__file__).resolve().parents[1] / "keel_norms"
            shutil.copytree(package, pathlib.Path(place) / "keel_norms")
            environment = {**os.environ, "PYTHONPATH": place, "LD_LIBRARY_PATH": folder}
            for name in ("KEEL_NORM_LIBRARY", "KEEL_NORM_BINDING"):
                environment.pop(name, None)
            program = "import keel_norms.torch as knn; print(knn.binding)"
            said = subprocess.run([sys.executable, "-c", program], env=environment, cwd=place,
                                  capture_output=True, text=True, check=True).stdout
            self.assertEqual(said.strip(), "stable")


if __name__ == "__main__":
    unittest.main()

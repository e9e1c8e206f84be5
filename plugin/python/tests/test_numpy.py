"""keel_norms.numpy against worked examples, central differences and its own float64.

KEEL_NORM_LIBRARY names the library; the worked examples are those of tests/support."""
import concurrent.futures
import ctypes
import pathlib
import re
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "plugin/python"))
from keel_norms import KeelError, _library  # noqa: E402
from keel_norms import numpy as kn  # noqa: E402
from keel_norms._norms import NORMS, SUMS  # noqa: E402

EPSILON = 2.0 ** -23


def read_examples():
    """{section: {key: array}} of the files that keel's own tests read."""
    sections = {}
    for name in ("rows", "columns"):
        text = (ROOT / f"tests/support/norm_golden_{name}.inc").read_text(encoding="utf-8")
        for part in re.split(r"\n# ", text)[1:]:
            title, _, body = part.partition("\n")
            keys = re.split(r"(?:^|\n)(\w+) =", body.rstrip(')"\n'))
            pairs = zip(keys[1::2], keys[2::2])
            sections[title] = {key: array_of(numbers) for key, numbers in pairs}
    return sections


def array_of(numbers):
    values = np.array([float(word) for word in numbers.split()])
    return values.reshape(4, 6) if values.size == 24 else values


GOLDEN = read_examples()
X, DY, GAIN, BIAS = (GOLDEN["inputs"][name] for name in ("x", "dy", "gamma", "beta"))

# Section, norm, whether it has gain and bias, attributes, keys that are compared.
EXAMPLES = [
    ("LayerNorm", "layer_norm", (True, True), {}, ("y", "dx", "dgamma", "dbeta")),
    ("LN-simple", "layer_norm", (False, False), {}, ("y", "dx")),
    ("DetachNorm", "detach_norm", None, {}, ("dx",)),
    ("DetachMean", "detach_norm", None, {"detach_variance": False}, ("dx",)),
    ("DetachVariance", "detach_norm", None, {"detach_mean": False}, ("dx",)),
    ("AdaNorm C=2 k=0.1", "ada_norm", None, {"C": 2, "k": 0.1}, ("y", "dx")),
    ("RMSNorm", "rms_norm", (True, False), {"eps": 1e-5}, ("y", "dx", "dgamma")),
    ("GroupNorm G=2", "group_norm", (True, True), {"groups": 2}, ("y", "dx")),
    ("GroupScaling G=2", "group_scaling", None, {"groups": 2}, ("y", "dx")),
    ("BatchNorm", "batch_norm", (True, True), {}, ("y", "dx", "dgamma")),
    ("PN-V", "pn_v", (True, True), {}, ("y", "dx", "dgamma")),
]


def forward(norm, affine, attributes, dtype, x=X):
    arguments = [x.astype(dtype)]
    for given, value in zip(affine or (), (GAIN, BIAS)):
        arguments.append(value.astype(dtype) if given else None)
    return getattr(kn, norm)(*arguments, **attributes)


class Examples(unittest.TestCase):
    def near(self, got, expected):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)

    def test_worked_examples(self):
        for section, norm, affine, attributes, keys in EXAMPLES:
            for dtype in (np.float32, np.float64):
                with self.subTest(section=section, dtype=dtype.__name__):
                    step = forward(norm, affine, attributes, dtype)
                    gradients = step.backward(DY.astype(dtype))
                    got = {"y": step.y, "dx": gradients.dx, "dgamma": gradients.dgain,
                           "dbeta": gradients.dbias}
                    self.assertEqual(step.y.dtype, dtype)
                    for key in keys:
                        self.near(got[key], GOLDEN[section][key])

    def test_weight_norm(self):
        expected = next(GOLDEN[name] for name in GOLDEN if name.startswith("WeightNorm"))
        v, g = np.array([[1.0, 2, 2], [0, 3, 4]]), np.array([2.0, 0.5])
        step = kn.weight_norm(v, g)
        dv, dg = step.backward(np.array([[.1, .2, .3], [.4, -.5, .6]]))
        for got, key in ((step.w.ravel(), "w"), (dv.ravel(), "dv"), (dg, "dg")):
            self.near(got, expected[key])

    def test_power_norm_over_two_steps(self):
        state = kn.first_state("power_norm", 6, dtype=np.float64)
        for number, x in ((1, X), (2, 2 * X[[3, 1, 0, 2]])):
            section = GOLDEN[f"PowerNorm step {number} (alpha=0.9/0.9, no warm-up)"]
            step = kn.power_norm(x, GAIN, BIAS, state=state)
            state = step.backward(DY).next_state
            if number == 1:
                self.near(step.y, section["y"])
                self.near(step.backward(DY).dx, section["dx_release"])
                self.near(state["psi2"], section["psi2_new"])
                self.near(state["nu"], section["nu_new"])
        self.assertEqual(int(state["step"]), 2)


class Gradients(unittest.TestCase):
    EXACT = [("layer_norm", {}), ("rms_norm", {}), ("group_norm", {"groups": 3}),
             ("batch_norm", {}), ("pn_v", {})]

    def test_central_differences(self):
        h = 1e-5
        for norm, attributes in self.EXACT:
            with self.subTest(norm=norm):
                def run(x):
                    return forward(norm, (True, True), attributes, np.float64, x)

                dx = run(X).backward(DY).dx
                for place in np.ndindex(X.shape):
                    moved = np.zeros_like(X)
                    moved[place] = h
                    up, down = (np.sum(DY * run(x).y) for x in (X + moved, X - moved))
                    self.assertAlmostEqual((up - down) / (2 * h), dx[place], delta=1e-7)

    def test_float32_stays_within_the_bound_of_float64(self):
        random = np.random.default_rng(5)
        x = (random.standard_normal((64, 96)) + 1000).astype(np.float32)
        dy = random.standard_normal(x.shape).astype(np.float32)
        for norm, attributes in self.EXACT:
            with self.subTest(norm=norm):
                fast, exact = (getattr(kn, norm)(x.astype(t), **attributes)
                               for t in (np.float32, np.float64))
                self.assertLess(np.abs(fast.y - exact.y).max(),
                                16 * EPSILON * max(1, np.abs(exact.y).max()))
                expected = exact.backward(dy.astype(np.float64)).dx
                self.assertLess(np.abs(fast.backward(dy).dx - expected).max(),
                                64 * EPSILON * max(1, np.abs(expected).max()))


class Arrays(unittest.TestCase):
    def test_views_and_dlpack_give_the_same_bits(self):
        x = np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)

        class Foreign:
            """An array of another library."""

            def __dlpack__(self, **options):
                return x.__dlpack__(**options)

            def __dlpack_device__(self):
                return x.__dlpack_device__()

        unaligned = np.frombuffer(b"...." + x.tobytes(), np.float32, offset=4).reshape(x.shape)
        wide = np.zeros((6, 16), np.float32)
        wide[:, ::2] = x
        expected = kn.layer_norm(x).y
        for other in (Foreign(), unaligned, wide[:, ::2], np.asfortranarray(x)):
            np.testing.assert_array_equal(kn.layer_norm(other).y, expected)
        np.testing.assert_array_equal(np.from_dlpack(expected), expected)

    def test_rows_of_three_axes_are_rows(self):
        x = np.random.default_rng(2).standard_normal((3, 5, 4)).astype(np.float32)
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]])
        step = kn.batch_norm(x, mask=mask)
        flat = kn.batch_norm(x.reshape(15, 4), mask=mask.ravel())
        np.testing.assert_array_equal(step.y, flat.y.reshape(x.shape))
        self.assertEqual(np.abs(step.y[mask == 0]).max(), 0)
        self.assertEqual(step.backward(x).dx.shape, x.shape)

    def test_images(self):
        x = np.random.default_rng(3).standard_normal((2, 4, 5, 3)).astype(np.float32)
        y = kn.batch_norm(x).y
        np.testing.assert_allclose(y.mean((0, 2, 3)), 0, atol=1e-6)
        np.testing.assert_allclose(y.var((0, 2, 3)), 1, atol=1e-4)
        self.assertEqual(kn.group_norm(x, groups=2).y.shape, x.shape)

    def test_an_empty_batch(self):
        step = kn.layer_norm(np.zeros((0, 8), np.float32), np.ones(8, np.float32))
        self.assertEqual(step.y.shape, (0, 8))
        np.testing.assert_array_equal(step.backward(step.y).dgain, np.zeros(8))

    def test_the_first_state_is_that_of_the_options(self):
        step = kn.mabn(X, GAIN, BIAS, m=2)
        given = kn.mabn(X, GAIN, BIAS, m=2, state=kn.first_state("mabn", 6, 2, np.float64))
        np.testing.assert_array_equal(step.y, given.y)
        for name, value in given.next_state.items():
            np.testing.assert_array_equal(step.next_state[name], value)
        self.assertEqual(step.next_state["x2"].shape, (2, 6))

    def test_state_is_not_written(self):
        state = kn.first_state("mabn", 6, m=2, dtype=np.float64)
        before = {name: value.copy() for name, value in state.items()}
        step = kn.mabn(X, GAIN, BIAS, state=state, m=2)
        after = step.backward(DY).next_state
        for name, value in before.items():
            np.testing.assert_array_equal(state[name], value)
            self.assertFalse(np.array_equal(after[name], value), name)

    def test_evaluation_leaves_the_state(self):
        state = kn.first_state("batch_norm", 6, dtype=np.float64)
        step = kn.batch_norm(X, state=state, training=False)
        np.testing.assert_array_equal(step.next_state["running_mean"], state["running_mean"])
        np.testing.assert_allclose(step.y, X / np.sqrt(1 + 1e-5), rtol=1e-15)


class Refusals(unittest.TestCase):
    def refused(self, kind, text, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def test_messages_say_what_was_expected(self):
        x = X.astype(np.float32)
        ones = np.ones(5, np.float32)
        self.refused(KeelError, "[layer_norm] gain: expected (6), got (5)",
                     lambda: kn.layer_norm(x, ones))
        self.refused(KeelError, "eps", lambda: kn.layer_norm(x, epsilon=1))
        self.refused(KeelError, "got 'x'", lambda: kn.layer_norm(x, eps="x"))
        self.refused(KeelError, "[layer_norm] gain: expected f64, as x is, got f32",
                     lambda: kn.layer_norm(X, np.ones(6, np.float32)))
        self.refused(KeelError, "no op is called 'norm'", lambda: kn.call("norm", [x]))
        self.refused(KeelError, "no op is called 'matmul'", lambda: kn.call("matmul", [x, x]))
        self.refused(KeelError, "at most 1 inputs, got 2", lambda: kn.call("ada_norm", [x, x]))
        self.refused(TypeError, "x: expected float32 or float64, got int64",
                     lambda: kn.layer_norm(np.arange(6).reshape(1, 6)))
        self.refused(TypeError, "got float16", lambda: kn.layer_norm(X.astype(np.float16)))
        self.refused(ValueError, "dy: expected (4, 6), got (4, 5)",
                     lambda: kn.layer_norm(x).backward(x[:, :5]))
        self.refused(ValueError, "got no nu, step",
                     lambda: kn.power_norm(x, state={"psi2": np.ones(6, np.float32)}))

    def test_addresses_are_checked(self):
        plan = _library.plan("layer_norm", "", ((_library.F32, (4, 6)),))
        x, y, row = (np.zeros(n, np.float32) for n in (24, 24, 4))
        outputs = [y.ctypes.data, row.ctypes.data, row.ctypes.data]
        self.refused(KeelError, "[layer_norm] x: expected an array f32(4, 6), got no address",
                     lambda: plan.run([None], outputs, None))
        self.refused(KeelError, "output 0: expected an address that is a multiple of 4",
                     lambda: plan.run([x.ctypes.data], [y.ctypes.data + 2, *outputs[1:]], None))
        shapes = ((4, 6), (6,), (4,), (4,), (4, 6))
        back = _library.plan("layer_norm_backward", "",
                             tuple((_library.F32, shape) for shape in shapes))
        self.assertGreater(back.workspace, 0)
        addresses = [a.ctypes.data for a in (x, y, row, row, x)]
        gradients = [np.zeros(n, np.float32) for n in (24, 6)]
        results = [*(a.ctypes.data for a in gradients), None]
        self.refused(KeelError, "expected a workspace", lambda: back.run(addresses, results, None))

    def test_no_plan_is_an_error_and_not_a_crash(self):
        library = _library.load()
        self.assertEqual(library.keel_plan_run(None, None, None, None, None), 2)
        self.assertEqual(library.keel_norm_prepare(None, None, None, 0, None), 2)
        self.assertEqual(library.keel_plan_outputs(None), 0)
        self.assertEqual(library.keel_plan_output(None, 0).dtype, _library.ABSENT)
        library.keel_plan_free(None)


class Threads(unittest.TestCase):
    def test_one_plan_in_many_threads(self):
        x = np.random.default_rng(4).standard_normal((512, 257)).astype(np.float32)
        expected = kn.layer_norm(x).backward(x)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for got in pool.map(lambda _: kn.layer_norm(x).backward(x), range(64)):
                np.testing.assert_array_equal(got.dx, expected.dx)

    def test_the_callers_executor_gives_the_same_bits(self):
        work_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        run_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, work_type,
                                    ctypes.c_void_p)

        class Executor(ctypes.Structure):
            _fields_ = [("run", run_type), ("context", ctypes.c_void_p),
                        ("threads", ctypes.c_int32), ("stream", ctypes.c_void_p)]

        shared = []
        pool = concurrent.futures.ThreadPoolExecutor(3)

        def share(_, blocks, work, argument):
            shared.append(blocks)
            cuts = np.linspace(0, blocks, 4, dtype=int).tolist()
            list(pool.map(lambda i: work(argument, cuts[i], cuts[i + 1]), range(3)))

        executor = Executor(run_type(share), None, 3, None)
        x = np.random.default_rng(6).standard_normal((2048, 64)).astype(np.float32)
        gain = np.ones(64, np.float32)
        step = kn.layer_norm(x, gain)
        inputs = (x, gain, step.outputs["mean"], step.outputs["rstd"], x)
        plan = _library.plan("layer_norm_backward", "wants_dbias=true",
                             tuple((_library.F32, a.shape) for a in inputs))
        outputs = [np.empty(sizes, np.float32) for _, sizes in plan.outputs]
        addresses = (ctypes.c_void_p * 5)(*(a.ctypes.data for a in inputs))
        results = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in outputs))
        room = np.empty(plan.workspace + 64, np.uint8)
        start = room.ctypes.data + -room.ctypes.data % 64
        status = _library.load().keel_plan_run(plan._handle, addresses, results, start,
                                               ctypes.addressof(executor))
        self.assertEqual(status, 0)
        self.assertTrue(shared and min(shared) > 1)
        expected = kn.layer_norm(x, gain, np.zeros(64, np.float32)).backward(x)
        for got, wanted in zip(outputs, (expected.dx, expected.dgain, expected.dbias)):
            np.testing.assert_array_equal(got, wanted)
        pool.shutdown()


class Table(unittest.TestCase):
    def test_the_table_of_norms_is_the_library_s(self):
        forwards = {op for op in _library.ops() if f"{op}_backward" in _library.ops()}
        self.assertEqual({*NORMS, "weight_norm", *SUMS}, forwards)
        for norm, facts in NORMS.items():
            inputs = _library.ops()[norm].inputs
            self.assertEqual(set(facts.states), set(facts.states) & set(inputs), norm)
            x = np.ones((4, 6), np.float32)
            attributes = {"group_norm": {"groups": 2}, "group_scaling": {"groups": 2}}.get(norm, {})
            if norm == "instance_norm":
                x = x.reshape(1, 4, 6)
            arguments = [x] + ([np.ones(1, np.float32)] if norm == "scale_norm" else
                               [np.ones(6, np.float32)] if norm == "seed_norm" else [])
            more = {name: np.ones(6 if norm == "seed_norm" else 1, np.float32)
                    for name in facts.more}
            step = getattr(kn, norm)(*arguments, **attributes, **more)
            values = [step._values.get(name) for name in inputs]
            self.assertEqual(len(kn.call(norm, values, attributes)), len(facts.outputs), norm)
            step.backward(x)


if __name__ == "__main__":
    unittest.main()

"""keel_norms.jax against keel_norms.numpy, to the bit, and against compositions of jax.numpy. JAX
is given the differences of the states that a backward moves: they are old + (next - old)."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    print(f"test_jax: skipped: {error}")
    sys.exit(77)
jax.config.update("jax_enable_x64", True)
import option_cases  # noqa: E402

from keel_norms import KeelError, _library  # noqa: E402
from keel_norms import jax as kj  # noqa: E402
from keel_norms import numpy as kn  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402

RANDOM = np.random.default_rng(7)


def drawn(*shape, dtype=np.float32):
    return (0.5 + RANDOM.standard_normal(shape)).astype(dtype)


def attributes_of(norm):
    return {"group_norm": {"groups": 2}, "group_scaling": {"groups": 2}, "mabn": {"m": 3},
            "unified_norm": {"m": 2}, "power_norm": {"warmup": 2}}.get(norm, {})


def first_state(norm, dtype=np.float32):
    return kn.first_state(norm, 8, attributes_of(norm).get("m"), dtype)


def case(norm, rows=6, dtype=np.float32):
    """x, dy, and gain, bias and further parameters as far as the norm has them."""
    shape = (rows, 8, 5, 3) if norm == "group_norm" else (rows, 5, 8)
    sizes = {"dgain": 1 if norm == "scale_norm" else 8, "dbias": 8,
             **{"d" + name: 8 if norm == "seed_norm" else 1 for name in NORMS[norm].more}}
    affine = [drawn(size, dtype=dtype) for name, size in sizes.items()
              if name in NORMS[norm].gradients]
    return drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype), affine


def step(norm, given, state, **options):
    """y, the gradients and the state after forward and backward, by JAX. `given` are x, dy, and
    gain and bias."""
    x, dy, affine = given
    facts, options = NORMS[norm], {**attributes_of(norm), **options}

    def loss(x, affine, state):
        stateful = {"state": state} if facts.states else {}
        result = getattr(kj, norm)(x, *affine, **options, **stateful)
        y, following = result if facts.states else (result, {})
        return jnp.sum(y * dy), (y, following)

    differentiate = jax.grad(loss, argnums=(0, 1, 2), has_aux=True, allow_int=True)
    (dx, daffine, dstate), (y, following) = jax.jit(differentiate)(x, affine, state)
    return y, dx, daffine, kj.after_backward(following, dstate)


def step_of_numpy(norm, given, state, **options):
    x, dy, affine = given
    options = {**attributes_of(norm), **options}
    stateful = {"state": state} if NORMS[norm].states else {}
    forward = getattr(kn, norm)(x, *affine, **options, **stateful)
    backward = forward.backward(dy)
    dx, *daffine = option_cases.gradients(norm, backward)
    return forward.y, dx, daffine, moved_as_in_jax(norm, state, backward.next_state)


def moved_as_in_jax(norm, state, following):
    """The next state with the roundings of old + (next - old)."""
    by_backward = [name for name, s in NORMS[norm].states.items() if s.by_backward]
    return {**following, **{name: state[name] + (following[name] - state[name])
                            for name in by_backward}}


class LikeNumPy(unittest.TestCase):
    def same(self, got, expected):
        got, expected = jax.tree.leaves(got), jax.tree.leaves(expected)
        self.assertEqual(len(got), len(expected))
        for g, e in zip(got, expected):
            self.assertEqual((g.dtype, g.shape), (e.dtype, e.shape))
            np.testing.assert_array_equal(np.asarray(g), e)

    def test_forward_backward_and_state_have_the_same_bits(self):
        for norm, facts in NORMS.items():
            for dtype in (np.float32, np.float64):
                for training in (True, False) if facts.states else (None,):
                    with self.subTest(norm=norm, dtype=dtype.__name__, training=training):
                        options = {} if training is None else {"training": training}
                        ours = theirs = (first_state(norm, dtype) if facts.states else {})
                        for _ in range(3):
                            given = case(norm, dtype=dtype)
                            *got, ours = step(norm, given, ours, **options)
                            *expected, theirs = step_of_numpy(norm, given, theirs, **options)
                            self.same(got, expected)
                            self.same(ours, theirs)

    def test_masks_and_images(self):
        given = case("batch_norm")
        mask = np.arange(30).reshape(6, 5) % 4 > 0
        for norm in ("batch_norm", "pn_v", "power_norm", "batch_renorm", "mabn", "unified_norm"):
            state = first_state(norm)
            with self.subTest(norm=norm):
                self.same(step(norm, given, state, mask=mask),
                          step_of_numpy(norm, given, state, mask=mask))
        image = drawn(3, 8, 4, 5), drawn(3, 8, 4, 5), given[2]
        state = kn.first_state("batch_norm", 8)
        self.same(step("batch_norm", image, state), step_of_numpy("batch_norm", image, state))

    def test_many_rows_on_many_threads(self):
        given = case("layer_norm", 4000)
        for norm in ("layer_norm", "batch_norm"):
            state = kn.first_state(norm, 8) if NORMS[norm].states else {}
            self.same(step(norm, given, state), step_of_numpy(norm, given, state))

    def test_weight_norm(self):
        v, g, dw = drawn(4, 6), drawn(4), drawn(4, 6)
        w, back = jax.vjp(kj.weight_norm, v, g)
        forward = kn.weight_norm(v, g)
        self.same((w, back(dw)), (forward.w, forward.backward(dw)))


class Vmap(unittest.TestCase):
    def test_every_norm_over_each_choice_of_axes(self):
        """vmap gives what a loop gives, whatever is batched."""
        for norm, facts in NORMS.items():
            cases = [case(norm) for _ in range(4)]
            x, dy = (np.stack([c[i] for c in cases]) for i in (0, 1))
            affine = [np.stack(parts) for parts in zip(*(c[2] for c in cases))]
            state = first_state(norm) if facts.states else {}
            for batched in (True, False):
                with self.subTest(norm=norm, batched=batched):
                    given = affine if batched else [a[0] for a in affine]
                    got = jax.vmap(lambda *given: step(norm, given, state),
                                   (0, 0, 0 if batched else None))(x, dy, given)
                    for i in range(4):
                        own = [a[i] for a in affine] if batched else given
                        expected = step_of_numpy(norm, (x[i], dy[i], own), state)
                        for g, e in zip(jax.tree.leaves(got), jax.tree.leaves(expected)):
                            np.testing.assert_array_equal(np.asarray(g[i]), e)

    def test_vmap_of_vmap_and_other_axes(self):
        x, gain = drawn(3, 5, 4, 8), drawn(4, 8)
        inner = jax.vmap(lambda x, gain: kj.rms_norm(x, gain), (1, 0), 1)
        y = jax.vmap(inner, (0, None))(x, gain)
        for i in range(3):
            for j in range(4):
                np.testing.assert_array_equal(np.asarray(y[i, :, j]),
                                              kn.rms_norm(x[i, :, j], gain[j]).y)

    def test_the_gradient_of_a_vmapped_loss(self):
        x, dy, (gain, bias) = case("layer_norm")

        def loss(norm):
            return lambda gain, bias: jnp.sum(norm(x, gain, bias) * dy)

        one = jax.grad(loss(jax.vmap(kj.layer_norm, (0, None, None))), (0, 1))(gain, bias)
        all_ = jax.grad(loss(kj.layer_norm), (0, 1))(gain, bias)
        for got, expected in zip(one, all_):  # sums in another order
            np.testing.assert_allclose(got, expected, rtol=0, atol=30 * 2.0 ** -23 * 30)


def composed(norm):
    """The norm in jax.numpy, as a function of x, gain and bias."""
    def centred(x, axes, gain, bias):
        mean = x.mean(axes, keepdims=True)
        return (x - mean) / jnp.sqrt(x.var(axes, keepdims=True) + 1e-5) * gain + bias

    def group_norm(x, gain, bias):
        groups = centred(x.reshape(x.shape[0], 2, -1), (2,), 1, 0).reshape(x.shape)
        return groups * gain[:, None, None] + bias[:, None, None]

    def ada_norm(x):
        xhat = centred(x, (-1,), 1, 0)
        return jax.lax.stop_gradient(1 - 0.1 * xhat) * xhat

    return {
        "layer_norm": lambda x, gain, bias: centred(x, (-1,), gain, bias),
        "rms_norm": lambda x, gain, bias:
            x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * gain + bias,
        "scale_norm": lambda x, gain: gain * x / jnp.linalg.norm(x, axis=-1, keepdims=True),
        "dyt": lambda x, gain, bias, alpha: gain * jnp.tanh(alpha * x) + bias,
        "derf": lambda x, gain, bias, alpha, shift:
            gain * jax.scipy.special.erf(alpha * x + shift) + bias,
        "ada_norm": ada_norm,
        "group_norm": group_norm,
        "batch_norm": lambda x, gain, bias: centred(x, (0, 1), gain, bias),
        "pn_v": lambda x, gain, bias:
            x / jnp.sqrt(jnp.square(x).mean((0, 1)) + 1e-5) * gain + bias,
    }[norm]


class LikeCompositions(unittest.TestCase):
    def test_values_and_gradients(self):
        """float32 within 16 eps for y and 64 eps for dx (docs/numerics.md) of float64 at JAX, and
        float64 to its rounding."""
        for norm in ("layer_norm", "rms_norm", "scale_norm", "dyt", "derf", "ada_norm",
                     "group_norm", "batch_norm", "pn_v"):
            x, dy, affine = case(norm)
            exact = [a.astype(np.float64) for a in (x, dy, *affine)]
            y, back = jax.vjp(composed(norm), exact[0], *exact[2:])
            expected = (y, *back(exact[1]))
            options = {"eps": 1e-5} if norm == "rms_norm" else {}
            for dtype, scale in ((np.float32, 2.0 ** -23), (np.float64, 2.0 ** -52)):
                def apply(x, *affine):
                    result = getattr(kj, norm)(x, *affine, **attributes_of(norm), **options)
                    return result[0] if NORMS[norm].states else result

                y, back = jax.vjp(apply, *(a.astype(dtype) for a in (x, *affine)))
                for name, got, wanted in zip(("y", "dx", "dgain", "dbias", "dalpha", "dshift"),
                                             (y, *back(jnp.asarray(dy, dtype))), expected):
                    with self.subTest(norm=norm, dtype=dtype.__name__, name=name):
                        factor = 16 if name == "y" else 64
                        self.assertLess(float(jnp.abs(got - wanted).max()),
                                        factor * scale * max(1, float(jnp.abs(wanted).max())))

    def test_narrow_types(self):
        x = drawn(6, 8)
        for dtype in (jnp.bfloat16, jnp.float16):
            narrow = jnp.asarray(x, dtype)
            y = kj.layer_norm(narrow, jnp.ones(8, dtype))
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(
                y, kj.layer_norm(narrow.astype(jnp.float32)).astype(dtype))
            dx = jax.grad(lambda x: kj.layer_norm(x).astype(jnp.float32)[0, 0])(narrow)
            self.assertEqual(dx.dtype, dtype)


class Rules(unittest.TestCase):
    def test_states_are_constants_but_for_what_the_backward_moves(self):
        x, gain = drawn(6, 8), drawn(8)

        def by_state(x):
            _, state = kj.batch_norm(x, gain)
            return state["running_mean"].sum()

        np.testing.assert_array_equal(jax.grad(by_state)(x), np.zeros_like(x))

    def test_the_next_state_in_a_loss_does_not_change_nu(self):
        x, state = drawn(6, 8), kj.first_state("power_norm", 8)

        def loss(state, share):
            y, following = kj.power_norm(x, state=state)
            return y.sum() + share * sum(v.sum() for v in following.values())

        found = [jax.grad(loss, allow_int=True)(state, share)["nu"] for share in (0.0, 1.0)]
        np.testing.assert_array_equal(*found)

    def test_a_loss_that_does_not_depend_on_y_leaves_nu_alone(self):
        x, state = drawn(6, 8), {**kj.first_state("power_norm", 8), "nu": drawn(8)}

        def loss(state, share):
            y, following = kj.power_norm(x, state=state)
            return share * y.sum() if share else jnp.sum(x), following

        for share, moves in ((0.0, False), (1.0, True)):
            by_state, following = jax.grad(loss, has_aux=True, allow_int=True)(state, share)
            nu = kj.after_backward(following, by_state)["nu"]
            self.assertEqual(bool(jnp.any(nu != state["nu"])), moves)

    def test_evaluation_leaves_nu_alone(self):
        x, state = drawn(6, 8), {**kj.first_state("power_norm", 8), "nu": drawn(8)}

        def loss(state):
            y, following = kj.power_norm(x, state=state, training=False)
            return y.sum(), following

        by_state, following = jax.grad(loss, has_aux=True, allow_int=True)(state)
        np.testing.assert_array_equal(kj.after_backward(following, by_state)["nu"], state["nu"])

    def test_an_empty_state_is_refused(self):
        with self.assertRaisesRegex(ValueError, "got no nu, psi2, step"):
            kj.power_norm(drawn(4, 6), state={})

    def test_a_scan_over_steps(self):
        x, dy, affine = case("power_norm")

        def body(state, _):
            def loss(affine, state):
                y, following = kj.power_norm(x, *affine, state=state)
                return jnp.sum(y * dy), following
            (_, moved), following = jax.grad(loss, (0, 1), has_aux=True, allow_int=True)(affine,
                                                                                        state)
            return kj.after_backward(following, moved), None

        first = kj.first_state("power_norm", 8)
        state, _ = jax.lax.scan(body, first, None, length=5)
        expected = kn.first_state("power_norm", 8)
        for _ in range(5):
            following = kn.power_norm(x, *affine, state=expected).backward(dy).next_state
            expected = moved_as_in_jax("power_norm", expected, following)
        for name, value in expected.items():
            np.testing.assert_array_equal(np.asarray(state[name]), value)

    def test_refusals(self):
        x = drawn(4, 6)
        for kind, text, run in (
                (KeelError, "[layer_norm] gain: expected (6), got (5)",
                 lambda: kj.layer_norm(x, np.ones(5, np.float32))),
                (KeelError, "no op is called 'norm'", lambda: kj.call("norm", [x])),
                (TypeError, "x: expected float32 or float64, got int64",
                 lambda: kj.layer_norm(np.arange(6).reshape(1, 6))),
                (ValueError, "got no nu, step",
                 lambda: kj.power_norm(x, state={"psi2": np.ones(6, np.float32)}))):
            with self.assertRaises(kind) as caught:
                run()
            self.assertIn(text, str(caught.exception))

    def test_an_empty_batch(self):
        y, back = jax.vjp(kj.layer_norm, jnp.zeros((0, 8), jnp.float32),
                          jnp.ones(8, jnp.float32))
        self.assertEqual(y.shape, (0, 8))
        np.testing.assert_array_equal(back(y)[1], np.zeros(8))

    def test_one_name_for_one_norm(self):
        self.assertEqual(set(NORMS), set(NORMS) & set(kj.__all__) & set(kn.__all__))
        self.assertIn("eps", kj.layer_norm.__doc__)
        self.assertTrue(_library.ops())


if __name__ == "__main__":
    unittest.main()

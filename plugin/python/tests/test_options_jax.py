"""Every option of every norm arrives by keel_norms.jax as by keel_norms.numpy."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import jax
except ImportError as error:
    print(f"test_options_jax: skipped: {error}")
    sys.exit(77)
jax.config.update("jax_enable_x64", True)
import option_cases  # noqa: E402

from keel_norms import jax as kj  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402


def step(norm, given, attributes, state):
    """The results of option_cases.run in one step, and the next state."""
    x, affine, dy = given
    more = {"state": state, "mask": option_cases.MASK} if state else {}

    def loss(x, affine, state):
        result = getattr(kj, norm)(x, *affine, **attributes,
                                   **({**more, "state": state} if state else {}))
        y, following = result if state else (result, {})
        return (y * dy).sum(), (y, following)

    (_, (y, following)), (dx, daffine, dstate) = jax.value_and_grad(
        loss, (0, 1, 2), has_aux=True, allow_int=True)(x, affine, state)
    following = kj.after_backward(following, dstate)
    states = NORMS[norm].states if state else ()  # JAX sorts what it returns
    return [y, dx, *daffine, *(following[name] for name in states)], following


def run(norm, attributes):
    facts, found, state = NORMS.get(norm), [], {}
    if facts and facts.states:
        state = kj.first_state(norm, 6, attributes.get("m"), np.float64)
    for given in option_cases.inputs(norm, attributes):
        results, state = step(norm, given, attributes, state)
        found += results
    return found


class Table(unittest.TestCase):
    def test_every_option_arrives(self):
        for norm, option, attributes, expected in option_cases.cases():
            with self.subTest(norm=norm, option=option):
                for g, e in zip(run(norm, attributes), expected, strict=True):
                    np.testing.assert_allclose(np.asarray(g), e, rtol=1e-12, atol=1e-12)


if __name__ == "__main__":
    unittest.main()

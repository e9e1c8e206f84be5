"""The errors of the handler for JAX where a call is wrong. keel_norms.jax makes no such call; one
must end in an error of JAX, and the process must go on."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    print(f"test_jax_errors: skipped: {error}")
    sys.exit(77)
from keel_norms import jax as kj  # noqa: E402

X = np.arange(24, dtype=np.float32).reshape(4, 6)
OUTPUTS = [((4, 6), np.float32), ((4,), np.float32), ((4,), np.float32)]


def raw(x=X, outputs=OUTPUTS, places=(0, -1, -1), **told):
    """A call of the handler with whatever it is told."""
    told = {"op": "layer_norm", "attributes": "", "ranks": [x.ndim], **told}
    told["ranks"] = np.array(told["ranks"], np.int64)
    results = [jax.ShapeDtypeStruct(*output) for output in outputs]
    call = jax.ffi.ffi_call("keel_norm", results, vmap_method="expand_dims")
    return jax.jit(lambda x: call(x, places=np.array(places, np.int64), **told))(x)


class Handler(unittest.TestCase):
    def test_a_call_that_is_right(self):
        np.testing.assert_array_equal(raw()[0], kj.layer_norm(X))

    def test_wrong_calls_are_errors_of_jax(self):
        narrow = X.astype(np.float16)
        for text, call in (
                ("no op is called 'norm'", lambda: raw(op="norm")),
                ("attribute 'width' is unknown", lambda: raw(attributes="width=3")),
                ("element type that keel lacks", lambda: raw(narrow)),
                ("[layer_norm] gain", lambda: raw(places=(0, 0, -1))),
                ("another number of results", lambda: raw(outputs=OUTPUTS[:2])),
                ("another number of results", lambda: raw(outputs=[*OUTPUTS, OUTPUTS[1]])),
                ("result 1 has another", lambda: raw(outputs=[OUTPUTS[0], ((3,), np.float32),
                                                              OUTPUTS[2]])),
                ("result 0 has another", lambda: raw(outputs=[((4, 6), np.int32), *OUTPUTS[1:]]))):
            with self.subTest(text=text):
                with self.assertRaises(Exception) as caught:
                    jax.block_until_ready(call())
                self.assertIn(text, str(caught.exception))
                self.test_a_call_that_is_right()

    def test_a_failure_of_one_element_of_many(self):
        """Under vmap the elements share threads; the text of the first that fails arrives."""
        call = jax.vmap(lambda x: raw(x, attributes="axes=3")[0])
        with self.assertRaises(Exception) as caught:
            jax.block_until_ready(call(jnp.ones((64, 4, 6), jnp.float32)))
        self.assertIn("axes", str(caught.exception))
        self.test_a_call_that_is_right()


if __name__ == "__main__":
    unittest.main()

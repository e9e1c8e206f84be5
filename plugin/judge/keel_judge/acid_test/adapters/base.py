"""The base class of adapters. One for a further library defines `to_own` and `from_own`, and
`gradients` where the library has them:

    class MyAdapter(keel_judge.Adapter):
        def to_own(self, tensor):
            return mylib.array(tensor.numpy())

        def from_own(self, array):
            return torch.from_numpy(array.to_numpy())

        def gradients(self, arrays):
            y, back = mylib.vjp(self.invoke, *self.own(arrays))
            return self.named(y, back(self.to_own(arrays.dy)))
"""
import inspect

from keel_judge.acid_test.binding import NAMES, parameters_of


class Adapter:
    """Calls a norm of one library. Arrays come and go as tensors of PyTorch on the CPU."""

    has_autograd = False  # whether `gradients` works without a function for the backward
    keeps_memory = False  # whether the library works on the very memory of the tensor
    keeps_strides = False
    is_torch = False  # whether its functions take tensors of PyTorch that record gradients
    has_float64 = True

    def __init__(self, binding, backward="autograd"):
        self.binding, self.backward = binding, backward

    def to_own(self, tensor):
        raise NotImplementedError

    def from_own(self, array):
        raise NotImplementedError

    def set_threads(self, count):
        """Whether the library now works with so many threads."""
        return False

    @property
    def has_gradients(self):
        return callable(self.backward) or (self.backward == "autograd" and self.has_autograd)

    def invoke(self, x, *parameters):
        """The norm on arrays of the library: `parameters` are those that there are, in order."""
        given = list(parameters)
        gain = given.pop(0) if self.binding.has_gain else None
        bias = given.pop(0) if given and self.binding.has_bias else None
        return self.binding.invoke(x, gain, bias)

    def own(self, arrays):
        return [self.to_own(t) for n, t in arrays.items() if n != "dy"]

    def named(self, y, gradients):
        """y and gradients of the arguments by the names that the test has for them."""
        names = ["dx"] + ["dgain"] * self.binding.has_gain + ["dbias"] * self.binding.has_bias
        found = {n: self.from_own(g) for n, g in zip(names, gradients) if g is not None}
        return {"y": self.from_own(y)} | found

    def forward(self, arrays):
        return {"y": self.from_own(self.invoke(*self.own(arrays)))}

    def gradients(self, arrays):
        raise NotImplementedError

    def both(self, arrays):
        """y and all gradients that the norm has."""
        if not self.has_gradients or arrays.dy is None:
            return self.forward(arrays)
        if not callable(self.backward):
            return self.gradients(arrays)
        y = self.forward(arrays)["y"]
        returned = call_backward(self.backward, self, arrays)
        returned = returned if isinstance(returned, (tuple, list)) else (returned,)
        names = ["dx"] + ["dgain"] * self.binding.has_gain + ["dbias"] * self.binding.has_bias
        found = {n: self.from_own(g) for n, g in zip(names, returned) if g is not None}
        return {"y": y} | found


def call_backward(backward, adapter, arrays):
    """A backward of its own: by the names of its parameters, or as (dy, x, gain, bias)."""
    own = {n: adapter.to_own(t) for n, t in arrays.items()}
    parameters = parameters_of(backward)
    roles = {p.name: p.role for p in parameters or ()}
    if not parameters or not {"x", "dy"} <= set(roles.values()):
        return backward(*(own[n] for n in ("dy", "x", "gain", "bias") if n in own))
    own["eps"] = adapter.binding.claim.used_eps
    return backward(**{p.name: own[p.role] for p in parameters if p.role in own and (
        p.is_needed or p.default is inspect.Parameter.empty or p.role in NAMES)})

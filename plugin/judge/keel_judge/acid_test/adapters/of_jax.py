"""JAX: functions of arrays, compiled by `jax.jit`, with gradients by `jax.vjp`."""
import jax
import jax.numpy
import ml_dtypes
import numpy
import torch

from keel_judge.acid_test.adapters.base import Adapter


class LibraryAdapter(Adapter):
    has_autograd = True
    has_float64 = False

    def __init__(self, *given):
        super().__init__(*given)
        self.compiled = jax.jit(self.invoke)
        self.backwards = jax.jit(self._backward)

    def _backward(self, dy, *own):
        y, back = jax.vjp(self.invoke, *own)
        return y, back(dy.astype(y.dtype))

    def to_own(self, tensor):
        tensor = tensor.detach().contiguous()
        if tensor.dtype == torch.bfloat16:
            return jax.numpy.asarray(tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
        return jax.numpy.asarray(tensor.numpy())

    def from_own(self, array):
        if not isinstance(array, jax.Array):
            raise TypeError(f"returned {type(array).__name__}, expected an array of JAX")
        array = numpy.array(array)
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    def forward(self, arrays):
        return {"y": self.from_own(self.compiled(*self.own(arrays)))}

    def gradients(self, arrays):
        y, found = self.backwards(self.to_own(arrays.dy), *self.own(arrays))
        return self.named(y, found)

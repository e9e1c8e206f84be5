"""MLX: functions of arrays, with gradients by `mlx.core.vjp`, on the default device."""
import mlx.core
import numpy
import torch

from keel_judge.acid_test.adapters.base import Adapter

NARROW = {torch.bfloat16: mlx.core.bfloat16, torch.float16: mlx.core.float16}


class LibraryAdapter(Adapter):
    has_autograd = True
    has_float64 = False

    def to_own(self, tensor):
        array = mlx.core.array(tensor.detach().float().contiguous().numpy())
        return array.astype(NARROW[tensor.dtype]) if tensor.dtype in NARROW else array

    def from_own(self, array):
        if not isinstance(array, mlx.core.array):
            raise TypeError(f"returned {type(array).__name__}, expected an array of MLX")
        narrow = next((t for t, m in NARROW.items() if m == array.dtype), None)
        wide = array.astype(mlx.core.float32) if narrow else array
        tensor = torch.from_numpy(numpy.array(wide))
        return tensor.to(narrow) if narrow else tensor

    def gradients(self, arrays):
        y, found = mlx.core.vjp(lambda *own: [self.invoke(*own)], self.own(arrays),
                                [self.to_own(arrays.dy)])
        return self.named(y[0], found)

"""NumPy: functions of arrays that share their memory with the tensors. A backward is a function of
its own (`--backward`)."""
import numpy
import torch

from keel_judge.acid_test.adapters.base import Adapter


class LibraryAdapter(Adapter):
    keeps_memory = keeps_strides = True

    def to_own(self, tensor):
        return tensor.detach().numpy()

    def from_own(self, array):
        if not isinstance(array, (numpy.ndarray, numpy.generic)):
            raise TypeError(f"returned {type(array).__name__}, expected an array")
        array = numpy.asarray(array)
        negative = any(step < 0 for step in array.strides)
        return torch.from_numpy(array.copy() if negative or not array.flags.writeable else array)

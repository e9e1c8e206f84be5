"""ONNX Runtime: a session, or the path of a model, whose inputs are x and what parameters it has in
the order gain, bias, and whose first output is y. It has no backward of its own."""
import numpy
import onnxruntime
import torch

from keel_judge.acid_test.adapters.base import Adapter


class LibraryAdapter(Adapter):
    def __init__(self, binding, backward="none"):
        super().__init__(binding, "none" if backward == "autograd" else backward)
        session = binding.function
        if not isinstance(session, onnxruntime.InferenceSession):
            session = session() if callable(session) else onnxruntime.InferenceSession(
                str(session), providers=["CPUExecutionProvider"])
        self.session, count = session, len(session.get_inputs())
        binding.has_gain, binding.has_bias = count > 1, count > 2
        self.types = [i.type for i in session.get_inputs()]

    def to_own(self, tensor):
        return numpy.ascontiguousarray(tensor.detach().numpy())

    def from_own(self, array):
        return torch.from_numpy(numpy.array(array))

    def invoke(self, *own):
        names = [i.name for i in self.session.get_inputs()]
        return self.session.run(None, dict(zip(names, own)))[0]

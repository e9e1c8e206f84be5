"""PyTorch: functions, modules, ops and custom autograd functions, eager or compiled."""
import torch

from keel_judge.acid_test.adapters.base import Adapter


class LibraryAdapter(Adapter):
    has_autograd = keeps_memory = keeps_strides = is_torch = True

    def to_own(self, tensor):
        return tensor

    def from_own(self, array):
        if not isinstance(array, torch.Tensor):
            raise TypeError(f"returned {type(array).__name__}, expected a tensor")
        return array.detach().cpu()

    def set_threads(self, count):
        torch.set_num_threads(count)
        return torch.get_num_threads() == count

    def gradients(self, arrays):
        leaves = [t.detach().requires_grad_() for n, t in arrays.items() if n != "dy"]
        y = self.invoke(*leaves)
        if not isinstance(y, torch.Tensor):
            self.from_own(y)
        if y.shape != arrays.x.shape:
            return {"y": self.from_own(y)}  # which no dy fits
        if not y.requires_grad:
            raise NoGradient("y does not depend on what requires a gradient")
        found = torch.autograd.grad(y, leaves, arrays.dy.to(y.dtype), allow_unused=True)
        return self.named(y, found)


class NoGradient(RuntimeError):
    """A forward that cuts the gradient."""

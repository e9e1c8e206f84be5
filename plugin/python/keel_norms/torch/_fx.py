"""Modules of keel as leaves of torch.fx: a graph calls them and does not look into them."""
from torch import nn
from torch.fx import Proxy


class _Root(nn.Module):
    """A root that has nothing but the norm that was traced by itself."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm


def leaf(module, x, *rest):
    """The call of a module, recorded by the tracer that gave x, a Proxy."""
    tracer = x.tracer
    if tracer.root is module:
        tracer.root = _Root(module)
    path = "norm" if isinstance(tracer.root, _Root) else tracer.path_of_module(module)
    return tracer.create_proxy("call_module", path, (x, *rest), {})


__all__ = ["Proxy", "leaf"]

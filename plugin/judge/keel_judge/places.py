"""Where in a program an op runs: module path, phase, and line of source."""
import os
import sys
import threading
from typing import NamedTuple

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

from keel_judge.call import tensors_in

OWN = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(os.path.abspath(torch.__file__))


class Place(NamedTuple):
    module: str
    phase: str  # forward, backward, optimizer
    line: str  # file:line of the caller's own code; of the forward op, in backward


class Stack(threading.local):
    """Where a thread is: the names of the modules that it is in, and these modules."""

    def __init__(self):
        self.names, self.callers, self.optimizing = [], [], []


class Places:
    """Follows modules by hooks, and the backward of an op by its sequence number: a node of the
    backward has the number that autograd was about to give out when its forward ran. Hooks run in
    every thread, and each has a stack of its own."""

    def __init__(self, model, saw=None, follows=True):
        self.saw = saw  # called with the name, the inputs and the output of every module
        self.follows = follows  # hooks of modules, which would become part of compiled programs
        self.names = {}
        self.parameters = {}
        if model is not None:
            self.names = {id(m): name for name, m in model.named_modules()}
            self.parameters = {id(p): name for name, p in model.named_parameters()}
        self.stack, self.forward, self.strangers = Stack(), {}, set()
        self.threads = {threading.get_ident()}  # those whose ops are judged or counted
        self.handles = []

    def __enter__(self):
        self.handles = [
            optimizers.register_optimizer_step_pre_hook(self._enter_optimizer),
            optimizers.register_optimizer_step_post_hook(self._leave_optimizer)]
        if self.follows:
            self.handles += [
                modules.register_module_forward_pre_hook(self._enter_module),
                modules.register_module_forward_hook(self._leave_module, always_call=True)]
        return self

    def __exit__(self, *unused):
        for handle in self.handles:
            handle.remove()

    def _enter_module(self, module, inputs):
        if threading.get_ident() not in self.threads and \
                torch._C._current_autograd_node() is None:
            self.strangers.add(threading.get_ident())
        self.stack.names.append(self._name(module))
        self.stack.callers.append(module)

    def _leave_module(self, module, inputs, output):
        if not self.stack.names:
            return
        name = self.stack.names.pop()
        if self.stack.callers.pop() is module and self.saw:
            self.saw(name, module, inputs, output)

    def _name(self, module):
        """The name in the model, or one below the module that calls it."""
        if id(module) in self.names:
            return self.names[id(module)]
        if not self.stack.callers:
            return type(module).__name__
        children = self.stack.callers[-1].named_children()
        own = next((name for name, m in children if m is module), type(module).__name__)
        return f"{self.module()}.{own}" if self.module() else own

    def module(self):
        """The name of the module that this thread is in."""
        return self.stack.names[-1] if self.stack.names else ""

    def _enter_optimizer(self, optimizer, args, kwargs):
        owners = {}
        for number, parameter in enumerate(p for g in optimizer.param_groups for p in g["params"]):
            name = self.parameters.get(id(parameter), f"parameter {number}")
            state = optimizer.state.get(parameter, {})
            for tensor in (parameter, parameter.grad, *state.values()):
                owners[id(tensor)] = name
        self.stack.optimizing.append((type(optimizer).__name__, owners))

    def _leave_optimizer(self, optimizer, args, kwargs):
        if self.stack.optimizing:
            self.stack.optimizing.pop()

    def now(self, arguments):
        """The place of an op that is about to run with these arguments."""
        node = torch._C._current_autograd_node()
        if self.stack.optimizing:
            return self._in_optimizer(tensors_in(arguments))
        if node is not None:
            return self._in_backward(node)
        place = Place(self.module(), "forward", caller())
        self.forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, place)
        return place

    def pass_by(self, with_line):
        """Notes an op that is not judged, for the sake of its backward; quick without its line."""
        if self.stack.optimizing or torch._C._current_autograd_node() is not None:
            return
        number = torch._C._autograd._get_sequence_nr() - 1
        if number not in self.forward:
            self.forward[number] = Place(self.module(), "forward", caller() if with_line else "")

    def _in_optimizer(self, tensors):
        name, owners = self.stack.optimizing[-1]
        found = next((owners[id(t)] for t in tensors if id(t) in owners), name)
        return Place(found, "optimizer", caller())

    def _in_backward(self, node):
        variable = getattr(node, "variable", None)
        if variable is not None:
            return Place(self.parameters.get(id(variable), ""), "backward", caller())
        forward = self.forward.get(node._sequence_nr())
        if forward is None:
            return Place("", "backward", caller())
        return forward._replace(phase="backward")

    def forget(self):
        """Ends a step: the numbers of its nodes will not come again."""
        self.forward.clear()


def caller():
    """The innermost frame that is neither PyTorch's nor the judge's."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((OWN, TORCH, "<")):
            return f"{os.path.relpath(path)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""

"""One call of an op: what it was given, in float64 on the CPU, and what it left."""
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

# Ops that write to arguments although their schemas do not say so.
WRITES_UNSAID = {"native_batch_norm": ("running_mean", "running_var"),
                 "cudnn_batch_norm": ("running_mean", "running_var"),
                 "miopen_batch_norm": ("running_mean", "running_var")}


class Refused(Exception):
    """Why a call cannot be judged."""


@dataclass
class Result:
    """A tensor that a call returned or wrote."""

    name: str
    got: torch.Tensor


def name_of(func):
    return func._schema.name.partition("::")[2]


def written_names(func):
    named = [a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
    return named + list(WRITES_UNSAID.get(name_of(func), ()))


def named_arguments(func, args, kwargs):
    """The values of all arguments by their names in the schema, defaults included."""
    given = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
    for argument in func._schema.arguments:
        if argument.name not in given and argument.has_default_value():
            given[argument.name] = argument.default_value
    return given


def copied(value):
    """Copies of the tensors in a value, for arguments that the op writes to."""
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)


def before_writing(func, given):
    """The arguments with copies of all memory that the op will overwrite."""
    written = {memory_of(t) for name in written_names(func) for t in tensors_in(given.get(name))}
    if not written:
        return given
    return pytree.tree_map_only(
        torch.Tensor, lambda t: t.detach().clone() if memory_of(t) in written else t, given)


def memory_of(tensor):
    """A key that is equal for tensors that share memory."""
    if tensor.layout != torch.strided:
        return id(tensor)
    return tensor.untyped_storage().data_ptr() or id(tensor)


def tensors_in(value):
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def widened(value):
    """A value for the judge: floats in float64 on the CPU, and options to fit."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.double() if value.is_floating_point() else value
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else value
    return torch.device("cpu") if isinstance(value, torch.device) else value


def widened_all(name, value):
    if name == "half_to_float":
        return False
    return pytree.tree_map(widened, value)


class Call:
    """A call with its arguments by name: `call["weight"]` is float64, `call.given["weight"]` is as
    the op had it. `results` are what it left. `wide`: other arguments to compute with."""

    def __init__(self, func, given, results, memory=float("inf"), wide=None):
        self.func, self.given, self.results, self.memory = func, given, results, memory
        self.name = name_of(func)
        check_judgeable([*tensors_in(given), *(r.got for r in results)])
        self.need(6 * sum(t.numel() for t in [*tensors_in(given), *(r.got for r in results)]))
        self.wide = {name: widened_all(name, value) for name, value in (wide or given).items()}

    def need(self, numbers):
        """Refuses where so many numbers in float64 are more than the judge may take."""
        if 8 * numbers > self.memory:
            raise Refused(f"memory: the judge needs about {8e-9 * numbers:.2g} GB")

    def __getitem__(self, name):
        return self.wide.get(name)

    def has(self, name):
        return self.wide.get(name) is not None

    def floats(self):
        """The floating tensors that the op was given."""
        return [t for t in tensors_in(self.given) if t.is_floating_point()]

    def results_shapes(self):
        return [result.got for result in self.results]

    def narrow_eps(self):
        """The unit roundoff of 16-bit inputs, else 0: what a kernel rounds between two products."""
        narrow = [t for t in self.floats() if t.dtype.itemsize == 2]
        return max((torch.finfo(t.dtype).eps / 2 for t in narrow), default=0.0)

    def run(self, **changed):
        """The judge's results, as a list; `changed` holds functions of some arguments."""
        values = {name: pytree.tree_map_only(torch.Tensor, changed[name], value)
                  if name in changed else value for name, value in self.wide.items()}
        return self.run_on(values)

    def returned(self, values):
        """What the op returns, in its own structure."""
        for name in written_names(self.func):
            values = {**values, name: copied(values.get(name))}
        return self.func(*positional(self.func, values), **keywords(self.func, values))

    def run_on(self, values):
        returned = self.returned(values)
        return [result.got for result in results_of(self.func, values, returned)]

    def mapped(self, function):
        """The judge's results for a function of every floating tensor."""
        def of(value):
            return pytree.tree_map_only(
                torch.Tensor, lambda t: function(t) if t.is_floating_point() else t, value)
        return self.run_on({name: of(value) for name, value in self.wide.items()})


def positional(func, values):
    return [values[a.name] for a in func._schema.arguments
            if not a.kwarg_only and a.name in values]


def keywords(func, values):
    return {a.name: values[a.name] for a in func._schema.arguments
            if a.kwarg_only and a.name in values}


def results_of(func, given, returned):
    """The tensors that a call returned, then those that it wrote and did not return."""
    returns = func._schema.returns
    values = returned if isinstance(returned, (tuple, list)) and len(returns) > 1 else [returned]
    results = []
    for place, (described, value) in enumerate(zip(returns, values)):
        tensors = tensors_in(value) if value is not None else []
        for number, tensor in enumerate(tensors):
            suffix = f"[{number}]" if isinstance(value, (tuple, list)) else ""
            results.append(Result((described.name or f"output {place}") + suffix, tensor))
    known = {id(result.got) for result in results}
    for name in written_names(func):
        for number, tensor in enumerate(tensors_in(given.get(name))):
            if id(tensor) not in known:
                suffix = f"[{number}]" if isinstance(given[name], (tuple, list)) else ""
                results.append(Result(name + suffix, tensor))
    return results


def check_judgeable(call_tensors):
    """Raises Refused for tensors that the judge does not understand."""
    for tensor in call_tensors:
        if tensor.device.type == "meta":
            raise Refused("tensors without values")
        if tensor.is_complex():
            raise Refused("complex numbers")
        if tensor.layout != torch.strided:
            raise Refused(f"layout {str(tensor.layout).removeprefix('torch.')}")
        if tensor.is_quantized:
            raise Refused("quantized numbers")
        if tensor.dtype == torch.float64 and tensor.dim() > 0:
            raise Refused("float64: the judge has no wider type")
        if tensor.is_floating_point() and tensor.dtype.itemsize == 1:
            raise Refused("8-bit numbers")

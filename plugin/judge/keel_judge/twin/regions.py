"""Judges what `torch.compile` made of a program by its twin: the graph that was given to the
compiler, recorded, which runs in float64 on the inputs of the compiled region.

A result of the region is held to the distance that its node may have (enclosures.py). The nodes
behind it then start from what the program has there, so that bounds do not grow from one saved
activation to the next."""
import contextlib
import copy
import functools
import time
from dataclasses import dataclass, field

import torch
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from keel_judge.call import Refused, Result, name_of, tensors_in
from keel_judge.judge import Judge, judging
from keel_judge.measure import Expected
from keel_judge.places import Place, caller
from keel_judge.rounding import EPS, FORMATS
from keel_judge.twin.enclosures import Enclosed, Unknown, enclose


@dataclass
class Region:
    """One run of a compiled graph, as the judge compares calls of ops."""

    name: str
    given: list
    results: list = field(default_factory=list)

    def floats(self):
        return [t for t in tensors_in(self.given) if t.is_floating_point()]


@dataclass
class Recorded:
    """A graph as it was given to the compiler, and its constants."""

    name: str
    graph: torch.fx.Graph
    constants: dict
    is_backward: bool
    number: int  # of the function; the forward and the backward have the same


def taken_over(got):
    """The numbers of the program: 16 bits may have been more where they were used at once."""
    there = Enclosed.of(got)
    form = FORMATS.get(got.dtype)
    if form and form.eps > EPS:
        there.distance = 2 * form.eps * there.value.abs() + form.tiny
    return there


class Twin:
    """Runs a recorded graph beside what the region returned and wrote."""

    def __init__(self, recorded, memory):
        self.recorded, self.memory = recorded, memory
        self.values, self.pairs = {}, []  # pairs of a Result and an Enclosed or Unknown

    def run(self, inputs, held, got):
        returned = pytree.tree_leaves(next(
            n for n in self.recorded.graph.nodes if n.op == "output").args)
        outputs = {}
        for place, node in enumerate(returned):
            if isinstance(node, torch.fx.Node) and isinstance(got[place], torch.Tensor):
                outputs.setdefault(node, (f"output {place} ({node.name})", got[place]))
        given = iter(zip(inputs, held))
        arguments = {}
        for node in self.recorded.graph.nodes:
            if node.op == "placeholder":
                self.values[node], arguments[node] = next(given)
            elif node.op == "get_attr":
                self.values[node] = Enclosed.of(self.recorded.constants[node.target])
            elif node.op == "call_function":
                self.values[node] = self.of(node, arguments)
                if node in outputs:
                    self.compare(node, Result(*outputs[node]))
        return self.pairs

    def compare(self, node, result):
        if isinstance(self.values[node], (Enclosed, Unknown)):
            self.pairs.append((result, self.values[node]))
            self.values[node] = taken_over(result.got)

    def of(self, node, arguments):
        """What a node has, or Unknown."""
        looked_up = [self.values[n] for n in node.all_input_nodes]
        unknown = next((v for v in looked_up if isinstance(v, Unknown)), None)
        if unknown:
            return unknown
        args, kwargs = map_arg((node.args, node.kwargs), self.values.__getitem__)
        try:
            if not isinstance(node.target, torch._ops.OpOverload):
                return self.of_python(node.target, args, kwargs)
            if name_of(node.target).startswith("sym_"):
                return node.target(args[0].value, *args[1:])
            if name_of(node.target) == "copy_" and node.args[0] in arguments:
                return self.written(node, args[1], arguments[node.args[0]])
            dtypes = [t.dtype for t in tensors_in(node.meta["val"])]
            return enclose(node.target, args, kwargs, dtypes, self.memory)
        except (Refused, NotImplementedError) as error:
            return Unknown(str(error).partition("\n")[0])
        except Exception as error:  # whatever it is, the program goes on
            return Unknown(f"the judge failed at {node.name}: {str(error).splitlines()[0]}")

    def written(self, node, source, tensor):
        """An input that the region writes to."""
        self.pairs.append((Result(f"input {node.args[0].name}", tensor), source))
        return source

    @staticmethod
    def of_python(target, args, kwargs):
        """Sizes, and the parts of a result."""
        if target.__name__ == "getitem":
            return args[0][args[1]]
        if any(isinstance(v, Enclosed) for v in pytree.tree_leaves((args, kwargs))):
            raise Refused(f"no rule for {target.__name__}")
        return target(*args, **kwargs)


class CompilingJudge(Judge):
    """Judges ops as Judge does, and compiled regions by their twins. Functions that were compiled
    before are compiled again."""

    def __init__(self, model, options, watch=None):
        if not hasattr(TorchDispatchMode, "ignore_compile_internals"):
            raise ValueError("compiled: this PyTorch runs compiled functions eagerly while ops "
                             "are judged; it needs a newer one")
        super().__init__(model, options, watch)
        self.forwards = {}

    @classmethod
    def ignore_compile_internals(cls):
        return True

    @contextlib.contextmanager
    def recording(self):
        """Sees every graph that is compiled inside."""
        import torch._functorch.config
        import torch._inductor.compile_fx as compiler
        whole = compiler.compile_fx
        torch.compiler.reset()
        compiler.compile_fx = functools.partial(whole, inner_compile=self._compile)
        try:
            with torch._functorch.config.patch(enable_autograd_cache=False):
                yield
        finally:
            compiler.compile_fx = whole
            torch.compiler.reset()

    def _compile(self, module, inputs, **options):
        import torch._inductor.compile_fx as compiler
        number = options.get("graph_id", 0)
        constants = {n.target: getattr(module, n.target) for n in module.graph.nodes
                     if n.op == "get_attr"}
        recorded = Recorded(f"compiled graph {number}", copy.deepcopy(module.graph), constants,
                            bool(options.get("is_backward")), number)
        compiled = compiler.compile_fx_inner(module, inputs, **options)

        def run(arguments):
            return self._run_region(recorded, compiled, arguments)
        run._boxed_call = True
        return run

    def _run_region(self, recorded, compiled, arguments):
        if not self._is_on() or self.sample.leaves_out():
            with _disable_current_modes():
                return compiled(arguments)
        place = self._place_of(recorded)
        began = time.perf_counter()
        held = list(arguments)
        with judging():
            inputs = [Enclosed.of(v) if isinstance(v, torch.Tensor) else v for v in held]
        spent = time.perf_counter() - began
        with _disable_current_modes():
            got = compiled(arguments)
        began = time.perf_counter()
        try:
            with judging():
                self._judge_region(recorded, (inputs, held, got), place)
        except Exception as error:  # whatever it is, the program goes on
            reason = str(error).partition("\n")[0]
            self.report.not_judged[recorded.name, f"the judge failed: {reason}"] += 1
        self.report.seconds += spent + time.perf_counter() - began
        return got

    def _place_of(self, recorded):
        """A backward has the line of its forward."""
        if not recorded.is_backward:
            self.forwards[recorded.number] = Place(self.places.module(), "forward", caller())
        known = self.forwards.get(recorded.number, Place("", "backward", ""))
        return known._replace(phase="backward") if recorded.is_backward else known

    def _judge_region(self, recorded, seen, place):
        inputs, held, got = seen
        self.call_number += 1
        region, expected = Region(recorded.name, held), []
        for result, there in Twin(recorded, self.options.memory).run(inputs, held, list(got)):
            if isinstance(there, Unknown):
                self.report.not_judged[recorded.name, there.reason] += 1
                continue
            region.results.append(result)
            if there.dtype.is_floating_point:
                expected.append(Expected(there.value, there.spread(there.value), roundings=0))
            else:
                doubt = torch.as_tensor(there.distance).bool().expand_as(there.value)
                expected.append(Expected(there.value, right=doubt))
        if region.results:
            self._compare(region, expected, place)

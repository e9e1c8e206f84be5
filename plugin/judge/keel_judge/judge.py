"""Judges the ops of a program while it runs."""
import contextlib
import fnmatch
import time
from dataclasses import dataclass

import torch
from torch.optim import optimizer as optimizers
from torch.utils._python_dispatch import (TorchDispatchMode, _disable_current_modes,
                                         _get_current_dispatch_mode)

from keel_judge import dump, elsewhere
from keel_judge.call import (Call, Refused, before_writing, name_of, named_arguments, results_of,
                             tensors_in)
from keel_judge.formulas import Formulas
from keel_judge.measure import BLIND, measure
from keel_judge.pattern import index_of, pattern_of
from keel_judge.places import Places
from keel_judge.report import Finding, Report
from keel_judge.rules import PASSED, rule_of
from keel_judge.sample import Sample

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


class RunFailed(Exception):
    """A record that cannot be written, or not be read."""


@dataclass
class Options:
    """The ops that are judged, and the cost that this may have."""

    ops: tuple = ("*",)  # patterns of names, "*norm*" for example
    modules: tuple = ("*",)
    every: int = 1  # judges every n-th step; a step ends with an optimizer's
    share: float = 1.0  # of the ops, chosen at random (Sample)
    cost: float = float("inf")  # that judging may add to the program's time, as a share of it
    seed: int = 0
    first: bool = False  # stops judging at the first finding
    rank: int | None = None  # judges only in this process of torch.distributed
    memory: float = 2e9  # bytes that the judge of one op may take
    seconds: float = float("inf")  # that judging may take in all
    dump: str = ""  # a folder for the inputs of ops that are wrong
    norms: bool = True  # whether to name what modules that look like norms compute
    compiled: bool = False  # judges what torch.compile made, and does not run it eagerly


class Judge(TorchDispatchMode):
    """Sees every ATen op, lets it run, and judges what it left."""

    supports_higher_order_operators = True

    def __init__(self, model, options, watch=None):
        super().__init__()
        self.options, self.report, self.formulas = options, Report(), Formulas()
        self.places = Places(model, self._saw, follows=not options.compiled)
        self.watch = watch  # called with every judged op (record, against)
        self.sample = Sample(options)
        self.call_number, self.plans, self.is_in = 0, {}, False
        self.is_here = options.rank is None or options.rank == current_rank()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not PLAIN.issuperset(types):
            return NotImplemented  # the class runs its own ops, which come here again
        if not self._is_on():
            return func(*args, **kwargs)
        if not isinstance(func, torch._ops.OpOverload):
            self.report.not_judged[str(func), "a compiled region: see docs/judge.md"] += 1
            return func(*args, **kwargs)
        plan = self.plans.get(func) or self.plans.setdefault(func, plan_of(func, self.options.ops))
        if plan == "pass" or self.sample.leaves_out():
            self._pass_by(func, plan)
            return func(*args, **kwargs)
        place = self.places.now((args, kwargs))
        self.call_number += 1
        if plan == "other" or not self._chooses(place.module):
            return func(*args, **kwargs)
        return self._run(func, args, kwargs, place)

    def _pass_by(self, func, plan):
        """Keeps the place of an op that is not judged, for its backward."""
        if plan == "pass":
            self.report.passed_by[func] += 1
        else:
            self.call_number += 1
        self.places.pass_by(with_line=self.options.share == 1)

    def _is_on(self):
        """Whether this process, this step and what is left of the budget are to be judged."""
        options, report = self.options, self.report
        return (self.is_here and report.steps % options.every == 0 and self.sample.takes_step
                and report.seconds < options.seconds and not (options.first and report.findings))

    def _chooses(self, module):
        patterns = self.options.modules
        return patterns == ("*",) or any(fnmatch.fnmatch(module, p) for p in patterns)

    def _saw(self, name, module, inputs, output):
        if self.options.norms and self.is_here and self._chooses(name):
            self.formulas.saw(name, module, inputs, output)

    def count_elsewhere(self, func):
        """An op of another thread that would have been judged, or not for another reason."""
        if self.is_here and plan_of_any(func, self.options.ops) == "judge":
            self.report.not_judged[elsewhere.label(func), elsewhere.REASON] += 1

    def name_norms(self):
        """After the program, when nothing sees what is run."""
        began, report = time.perf_counter(), self.report

        def is_in_time():
            spent = report.seconds + time.perf_counter() - began
            return spent < self.options.seconds
        report.norms, report.norms_left = self.formulas.found(is_in_time)
        report.seconds += time.perf_counter() - began

    def _run(self, func, args, kwargs, place):
        rule = rule_of(func)
        if rule is None and self.watch is None:
            self.report.not_judged[name_of(func), "no rule"] += 1
            return func(*args, **kwargs)
        began = time.perf_counter()
        given = named_arguments(func, args, kwargs)
        with judging():
            before = before_writing(func, given)
        spent = time.perf_counter() - began
        returned = func(*args, **kwargs)
        began = time.perf_counter()
        call_results = results_of(func, given, returned)
        with judging():
            self._judge(rule, func, (before, call_results), place)
        self.report.seconds += spent + time.perf_counter() - began
        return returned

    def _judge(self, rule, func, seen, place):
        before, results = seen
        name = name_of(func)
        try:
            if rule is None:
                raise Refused("no rule")
            call = Call(func, before, results, self.options.memory)
            expected = rule(call)
            self._compare(call, expected, place)
        except Exception as error:  # whatever it is, the program goes on
            reason = str(error).partition("\n")[0]
            known = isinstance(error, (Refused, NotImplementedError))
            self.report.not_judged[name, reason if known else f"the judge failed: {reason}"] += 1
            expected = None
        if self.watch:
            self._show(name, place, results, expected)

    def _show(self, *seen):
        try:
            self.watch(*seen)
        except Exception as error:  # not to be taken for one of the program that runs
            raise RunFailed(f"the other run: {error}") from error

    def _compare(self, call, expected, place):
        row = self.report.row(call.name, place)
        row.calls += 1
        self.report.judged += 1
        widest = max((t.dtype.itemsize for t in call.floats()), default=4)
        is_blind = False
        for result, wanted in zip(call.results, expected):
            if wanted is None or result.got.numel() == 0:
                continue
            measured = measure(result.got, wanted, widest)
            row.share = max(row.share, float(measured.share.max()))
            row.power = max(row.power, measured.power)
            is_blind |= measured.power > BLIND
            self._note(call, result, (wanted, measured), place)
        row.blind += is_blind
        self.report.blind += is_blind

    def _note(self, call, result, judged, place):
        wanted, measured = judged
        row = self.report.row(call.name, place)
        if bool(measured.wrong.any()):
            row.wrong += 1
            self.report.findings.append(self._finding(call, result, judged, place))
        elif measured.suspicion:
            row.suspect += 1
            self.report.suspect.append(self._finding(call, result, judged, place))
        if measured.kernels:
            self.report.classes[call.name, measured.kernels] += 1
        if measured.unjudged:
            self.report.not_judged[call.name, "elements without a finite bound"] += 1

    def _finding(self, call, result, judged, place):
        wanted, measured = judged
        worst = int(measured.share.argmax())
        given = tensors_in(call.given)
        finding = Finding(
            call.name, *place, self.report.steps, self.call_number, result.name,
            index_of(worst, result.got.shape), float(result.got.detach().flatten()[worst]),
            float(wanted.value.flatten()[worst]), float(measured.bound.flatten()[worst]),
            int(measured.wrong.sum()), result.got.numel(),
            pattern_of(measured.wrong) if bool(measured.wrong.any()) else "within the bound",
            [list(t.shape) for t in given], sorted({str(t.dtype)[6:] for t in given}),
            str(result.got.device), measured.suspicion)
        if self.options.dump and not finding.doubt and hasattr(call, "func"):
            finding.dump = dump.write(self.options.dump, call, finding)
        return finding

    def recording(self):
        """What else is entered around the program (CompilingJudge)."""
        return contextlib.nullcontext()

    def end_step(self, *unused):
        self.report.steps += 1
        self.call_number = 0
        self.places.forget()
        self.sample.next_step(self.report.seconds)
        self.come_or_go(self._is_on())

    def come_or_go(self, wanted):
        """Enters the mode or leaves it: where nothing is to be judged it would only cost time."""
        if wanted and not self.is_in:
            self.__enter__()
        elif not wanted and self.is_in and _get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)
        else:
            return
        self.is_in = wanted


def plan_of_any(func, patterns):
    is_op = isinstance(func, torch._ops.OpOverload)
    return plan_of(func, patterns) if is_op else "judge"


def plan_of(func, patterns):
    """Decides whether an op is passed by, judged, or left to other patterns."""
    if name_of(func) in PASSED or is_view(func):
        return "pass"
    wanted = any(fnmatch.fnmatch(name_of(func), p) for p in patterns)
    return "judge" if wanted else "other"


def is_view(func):
    returns = func._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def current_rank():
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and \
        distributed.is_initialized() else 0


@contextlib.contextmanager
def judging():
    """Nothing sees the judge's own ops, and whole numbers become float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _disable_current_modes(), torch.no_grad(), \
                torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_default_dtype(before)


def made(model, options, watch):
    if not options.compiled:
        return Judge(model, options, watch)
    from keel_judge.twin import CompilingJudge
    return CompilingJudge(model, options, watch)


@contextlib.contextmanager
def judge(model=None, **options):
    """Judges every op that runs inside, forward, backward and optimizer, and gives a Report.

        with keel_judge.judge(model) as report:
            loss = step()
        assert report.ok, report.text()

    `model` gives the names of modules and parameters. `options` are those of Options."""
    watch = options.pop("watch", None)
    mode = made(model, Options(**options), watch)
    others = elsewhere.Elsewhere(mode.count_elsewhere, mode.places.threads)
    with mode.places, others, mode.recording():
        handle = optimizers.register_optimizer_step_post_hook(mode.end_step)
        try:
            mode.come_or_go(True)
            yield mode.report
        finally:
            handle.remove()
            mode.come_or_go(False)
            mode.report.steps += 1 if mode.call_number or not mode.report.steps else 0
            mode.report.strangers = len(mode.places.strangers)
    mode.name_norms()

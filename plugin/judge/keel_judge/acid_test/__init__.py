"""An acid test for anybody's norm: each property gets a verdict, from derived bounds."""
import time

from keel_judge.acid_test.report import AcidReport, repeat_command
from keel_judge.acid_test.target import Target

TIMEOUT = 60.0  # seconds of processor time without a result: a first call may compile


def acid(function, as_=None, **options):
    """Tries all properties of a norm and gives an AcidReport.

        report = keel_judge.acid(my_rms_norm, as_="rmsnorm")
        assert report.ok, report.text()

    `function` is a callable, a module of PyTorch, a session of ONNX Runtime, or a name as the
    command takes it. Options are those of `keel-judge norm`: eps, eps_place, unbiased, offset,
    groups, cast, momentum (the claim); backward ("autograd", "none" or a function), call, adapter,
    gain and bias (whether the norm has them), width, shape; dtype and parameters ("f32", "bf16",
    "f16"), seed, quick, large, most_rows, timeout, only and skip (names of properties), only_case,
    record and against (files of another run), and isolate=False, which runs all in this process."""
    from keel_judge.acid_test.outcome import Verdict
    from keel_judge.acid_test.properties import PROPERTIES
    from keel_judge.acid_test.runner import run_here, run_in_child
    options = {"timeout": TIMEOUT, "isolate": True, "seed": 0, **options}
    options["as_"] = as_
    target = Target(function, options)
    if isinstance(function, str) or not options["isolate"]:
        options["forked"] = target.options["forked"] = False
    else:
        target.options["forked"] = True
    names = chosen(PROPERTIES, options)
    check(options)
    verdicts = {n: Verdict(n, PROPERTIES[n].title) for n in names}
    began = time.perf_counter()
    run = run_in_child if options["isolate"] else run_here
    run(target, names, verdicts, options)
    for verdict in verdicts.values():
        if verdict.number >= 0:
            verdict.command = repeat_command(target, verdict)
    return AcidReport(target, verdicts, time.perf_counter() - began)


def check(options):
    if not options["timeout"] > 0:
        raise ValueError(f"timeout: {options['timeout']}, expected more than 0")
    if options.get("against"):
        from keel_judge.acid_test.properties.recorded import read_record
        read_record(options["against"])
    if options.get("record"):
        open(options["record"], "wb").close()


def chosen(properties, options):
    """The properties that are asked for, in their order."""
    for name in [*(options.get("only") or ()), *(options.get("skip") or ())]:
        if name not in properties:
            raise ValueError(f"{name!r} is no property: expected one of {', '.join(properties)}")
    wanted = set(options.get("only") or properties)
    if options.get("record") or options.get("against"):
        wanted.add("recorded")
    return [n for n in properties if n in wanted and n not in (options.get("skip") or ())]


__all__ = ["AcidReport", "acid"]

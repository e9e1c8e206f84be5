"""The command keel-judge: runs a script and judges every op of it."""
import argparse
import os
import runpy
import sys
import traceback

from keel_judge import norm_command, traces, writers
from keel_judge.judge import RunFailed, judge

OK, WRONG, USAGE, BAD_INPUT, FILES, SCRIPT = 0, 1, 2, 3, 4, 5
INTERRUPTED = 130  # as shells have it


def parser():
    p = argparse.ArgumentParser(
        prog="keel-judge", description="Runs a Python script and judges every op of its training "
        "steps in float64. Exit code: 0 ok, 1 a result is wrong, 2 usage, 3 bad input, 4 files, "
        "5 the script failed. `keel-judge norm` is an acid test of one norm: see its --help.")
    p.add_argument("script")
    p.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    p.add_argument("--ops", default="*", help="patterns of ops, with commas: mm,*norm*")
    p.add_argument("--every", type=int, default=1, metavar="N", help="judge every N-th step")
    p.add_argument("--share", type=float, default=1.0, help="of the ops, chosen at random")
    p.add_argument("--cost", type=float, default=float("inf"), metavar="SHARE",
                   help="leave out steps so that judging adds at most this share to the time")
    p.add_argument("--seconds", type=float, default=float("inf"), help="to judge for")
    p.add_argument("--memory", type=float, default=2.0, metavar="GB", help="for one op")
    p.add_argument("--modules", default="*", help="patterns of modules, with commas")
    p.add_argument("--seed", type=int, default=0, help="of the choice of ops by --share")
    p.add_argument("--rank", type=int, help="judge in this process of torch.distributed alone")
    p.add_argument("--first", action="store_true", help="stop judging at the first wrong result")
    p.add_argument("--strict", action="store_true",
                   help="also fail if a result is suspect or not judged, or a norm is not what "
                   "its name says")
    p.add_argument("--compiled", action="store_true",
                   help="judge what torch.compile made by its graph; without it, compiled "
                   "functions run eagerly")
    p.add_argument("--no-norms", action="store_true", help="do not name what norms compute")
    p.add_argument("--table", action="store_true", help="print all ops, nearest to bounds first")
    p.add_argument("--dump", default="", metavar="DIR", help="save the inputs of wrong ops")
    p.add_argument("--record", metavar="DIR", help="write all results")
    p.add_argument("--against", metavar="DIR", help="compare with a record")
    for name in ("json", "junit", "html"):
        p.add_argument(f"--{name}", metavar="FILE", help=f"write the report as {name.upper()}")
    return p


def options_of(given):
    return {"ops": tuple(given.ops.split(",")), "every": given.every, "share": given.share,
            "cost": given.cost, "seconds": given.seconds, "memory": given.memory * 1e9,
            "rank": given.rank, "modules": tuple(given.modules.split(",")), "seed": given.seed,
            "first": given.first, "dump": given.dump, "norms": not given.no_norms,
            "compiled": given.compiled}


def context_of(given):
    if given.against:
        return traces.against(given.against, **options_of(given))
    if given.record:
        return traces.record(given.record, **options_of(given))
    return judge(**options_of(given))


def write_files(given, report):
    for name, make in (("json", writers.as_json), ("junit", writers.as_junit),
                       ("html", writers.as_html)):
        if getattr(given, name):
            with open(getattr(given, name), "w", encoding="utf-8") as out:
                out.write(make(report))


def run_script(given):
    """How the script ended: with what, or nothing, and the exit code that follows. What it raises
    is its own and no failure of the judge: its traceback is printed as Python would."""
    sys.argv = [given.script, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))  # as `python script.py` has it
    try:
        runpy.run_path(given.script, run_name="__main__")
    except SystemExit as end:
        return ("", OK) if end.code in (None, 0) else (f"exit code {end.code}", SCRIPT)
    except KeyboardInterrupt:
        return "an interruption", INTERRUPTED
    except RunFailed:
        raise
    except Exception as error:
        print_traceback(error)
        return type(error).__name__, SCRIPT
    return "", OK


def print_traceback(error):
    """Without the frames of this file and of runpy, which ran the script."""
    told = traceback.TracebackException.from_exception(error)
    told.stack[:] = [f for f in told.stack if f.filename not in (__file__, runpy.__file__)
                     and not f.filename.startswith("<frozen")]
    print("".join(told.format()), end="", file=sys.stderr)


def run(given):
    with open(given.script, "rb"):  # that a script cannot be read is no failure of its own
        pass
    with context_of(given) as seen:
        end, code = run_script(given)
    report = getattr(seen, "report", seen)
    write_files(given, report)
    print(report.text(rank=given.table))
    if seen is not report:
        print(seen.text())
    if end:
        print(f"keel-judge: {given.script} ended with {end}; the report is of what ran before",
              file=sys.stderr)
        return code
    strictly = given.strict and (report.suspect or report.differing()
                                 or not report.is_complete())
    return OK if report.ok and seen.ok and not strictly else WRONG


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["norm"]:
        return norm_command.main(arguments[1:])
    given = parser().parse_args(arguments)
    if given.every < 1 or not 0 < given.share <= 1 or not given.cost > 0:
        parser().error("--every is at least 1, --share lies in (0, 1], --cost is more than 0")
    try:
        return run(given)
    except (ValueError, OSError, RunFailed) as error:
        print(f"keel-judge: {error}", file=sys.stderr)
        is_file = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
        return FILES if is_file else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())

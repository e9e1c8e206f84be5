"""The command `keel-judge norm`: an acid test of one norm."""
import argparse
import sys

from keel_judge.acid_test import TIMEOUT, acid
from keel_judge.acid_test.claim import CASTS, KINDS

OK, WRONG, USAGE, BAD_INPUT, FILES = 0, 1, 2, 3, 4


def parser():
    p = argparse.ArgumentParser(
        prog="keel-judge norm", description="Tries a norm's properties and gives each a verdict: "
        "pass, limit, FAIL or not tried. Exit code: 0 nothing fails, 1 something does, 2 usage, "
        "3 bad input, 4 files.")
    p.add_argument("norm", metavar="MODULE:CALLABLE", help="or a dotted name, or a model.onnx")
    claim = p.add_argument_group("what it claims to be")
    claim.add_argument("--as", dest="as_", choices=sorted(KINDS), help="the norm; else its name")
    claim.add_argument("--eps", type=float)
    claim.add_argument("--eps-place", choices=("inside", "outside"), help="of the root")
    claim.add_argument("--unbiased", action="store_true", help="the variance is over n - 1")
    claim.add_argument("--offset", type=int, choices=(0, 1), help="added to the gain")
    claim.add_argument("--groups", type=int)
    claim.add_argument("--cast", choices=CASTS, help="where 16-bit kernels round x̂")
    claim.add_argument("--momentum", type=float)
    how = p.add_argument_group("how it is called")
    how.add_argument("--backward", default="autograd", metavar="autograd|none|MODULE:CALLABLE")
    how.add_argument("--call", metavar="EXPRESSION", help="of f, x, gain and bias")
    how.add_argument("--adapter", metavar="LIBRARY", help="torch, numpy, jax, mlx, onnx, or "
                     "MODULE:CLASS")
    for role in ("gain", "bias"):
        how.add_argument(f"--{role}", action=argparse.BooleanOptionalAction,
                         help=f"whether it has a {role}")
    how.add_argument("--width", type=int, help="the only one that it takes")
    what = p.add_argument_group("what is tried")
    types = ("f32", "bf16", "f16")
    what.add_argument("--dtype", choices=types, default="f32")
    what.add_argument("--parameters", choices=types, help="their type, if it is another")
    what.add_argument("--quick", action="store_true", help="fewer cases: about ten seconds")
    what.add_argument("--large", action="store_true", help="more than 2^31 elements, too")
    what.add_argument("--most-rows", type=int, metavar="N", help="leave out cases of more rows, "
                      "for a norm that is slow")
    what.add_argument("--seed", type=int, default=0)
    what.add_argument("--only", metavar="PROPERTIES", help="with commas")
    what.add_argument("--skip", metavar="PROPERTIES", help="with commas")
    what.add_argument("--case", metavar="PROPERTY/NUMBER", help="one case again")
    what.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS",
                      help="of processor time for a case")
    what.add_argument("--record", metavar="FILE", help="write results, for another machine")
    what.add_argument("--against", metavar="FILE", help="compare with the record of another run")
    what.add_argument("--strict", action="store_true", help="a limit fails, too")
    for name in ("json", "junit", "html"):
        p.add_argument(f"--{name}", metavar="FILE", help=f"write the report as {name.upper()}")
    return p


def options_of(given):
    options = {k: v for k, v in vars(given).items()
               if k not in ("norm", "json", "junit", "html", "strict", "case", "only", "skip")}
    for name in ("only", "skip"):
        if getattr(given, name):
            options[name] = getattr(given, name).split(",")
    if given.case:
        name, _, number = given.case.rpartition("/")
        if not number.isdigit():
            raise ValueError(f"--case {given.case}: expected PROPERTY/NUMBER")
        options |= {"only": [name], "only_case": int(number)}
    return options


def run(given):
    report = acid(given.norm, **options_of(given))
    for name in ("json", "junit", "html"):
        if getattr(given, name):
            with open(getattr(given, name), "w", encoding="utf-8") as out:
                out.write(getattr(report, f"as_{name}")())
    print(report.text())
    return OK if report.ok and not (given.strict and report.of("limit")) else WRONG


def main(arguments):
    given = parser().parse_args(arguments)
    try:
        return run(given)
    except (ValueError, ImportError, AttributeError) as error:
        print(f"keel-judge norm: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"keel-judge norm: {error}", file=sys.stderr)
        return FILES

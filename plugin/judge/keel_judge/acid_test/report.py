"""The report of an acid test: as text, JSON, JUnit and HTML."""
import html
import importlib.metadata
import math
import platform
import shlex
from xml.sax.saxutils import escape, quoteattr

from keel_judge import writers
from keel_judge.acid_test.outcome import FAIL, LIMIT, NOT_TRIED, PASS

# option of the command: name in Python, for the command that repeats a case.
FLAGS = {"as_": "--as", "eps": "--eps", "eps_place": "--eps-place", "offset": "--offset",
         "groups": "--groups", "cast": "--cast", "momentum": "--momentum",
         "backward": "--backward", "call": "--call", "adapter": "--adapter", "dtype": "--dtype",
         "parameters": "--parameters", "width": "--width",
         "most_rows": "--most-rows"}
SWITCHES = {"unbiased": "--unbiased", "quick": "--quick", "large": "--large"}


def repeat_command(target, verdict):
    """The command that runs the worst case again; for a callable without a name, the call."""
    options = target.options
    case = f"{verdict.name}/{verdict.number}"
    if not isinstance(target.given, str):
        return f'acid({target.name()}, ..., seed={options.get("seed", 0)}, ' \
            f'only=["{verdict.name}"], only_case={verdict.number})'
    words = ["keel-judge", "norm", target.given]
    for name, flag in FLAGS.items():
        if isinstance(options.get(name), (str, int, float)) and options[name] is not None:
            words += [flag, str(options[name])]
    words += [flag for name, flag in SWITCHES.items() if options.get(name)]
    for role in ("gain", "bias"):
        if options.get(role) is not None:
            words.append(f"--{'' if options[role] else 'no-'}{role}")
    if verdict.name == "recorded" and options.get("against"):
        words += ["--against", options["against"]]
    return shlex.join([*words, "--seed", str(options.get("seed", 0)), "--case", case])


# Libraries whose versions a report names, where they are installed.
LIBRARIES = ("keel-judge", "torch", "numpy", "jax", "mlx", "onnxruntime", "triton")


def versions():
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class AcidReport:
    """`verdicts` by name; `ok` is true if nothing fails."""

    def __init__(self, target, verdicts, seconds):
        self.name, self.verdicts, self.seconds = target.name(), verdicts, seconds
        self.versions = versions()
        self.options = {k: v for k, v in target.options.items()
                        if isinstance(v, (str, int, float, bool))}

    def of(self, level):
        return [v for v in self.verdicts.values() if v.level == level]

    @property
    def ok(self):
        return not self.of(FAIL)

    @property
    def calls(self):
        return sum(v.calls for v in self.verdicts.values())

    def summary(self):
        counts = ", ".join(f"{len(self.of(level))} {word}" for level, word in (
            (PASS, "pass"), (LIMIT, "with a limit"), (FAIL, "FAIL"), (NOT_TRIED, "not tried")))
        return f"{self.name}: {counts}; {self.calls} calls in {self.seconds:.1f} s"

    def text(self):
        lines = []
        for v in self.verdicts.values():
            lines.append(f"{v.level:9} {v.name:18} {share_of(v):>8}  {v.title}")
            if v.words and (v.level != PASS or v.name == "formula"):
                lines.append(f"{'':10}{v.words}")
            if v.level in (FAIL, LIMIT):
                lines += [f"{'':10}also: {words}" for words in v.also[:2]]
                lines.append(f"{'':10}case {v.number}: {v.case}")
                lines += [f"{'':10}again: {v.command}"] if v.command else []
        return "\n".join([*lines, self.summary()])

    def as_dict(self):
        return {"norm": self.name, "ok": self.ok, "calls": self.calls, "seconds": self.seconds,
                "options": self.options, "versions": self.versions,
                "verdicts": [v.as_dict() for v in self.verdicts.values()]}

    def as_json(self):
        return writers.as_json(self)

    def as_junit(self):
        """A test case a property: failed, or skipped if it has a limit or was not tried."""
        cases = []
        for v in self.verdicts.values():
            inner = ""
            if v.level == FAIL:
                inner = f"<failure message={quoteattr(v.words)}>" \
                    f"{escape(v.case)}\n{escape(v.command)}</failure>"
            elif v.level in (LIMIT, NOT_TRIED):
                inner = f"<skipped message={quoteattr(f'{v.level}: {v.words}')}/>"
            cases.append(f"<testcase classname={quoteattr(self.name)} name={quoteattr(v.name)} "
                         f'time="{v.seconds:.3f}">{inner}</testcase>')
        return writers.suite("keel_judge norm", cases, len(self.of(FAIL)), self.seconds)

    def as_html(self):
        rows = "".join(html_row(v) for v in self.verdicts.values())
        told = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        heads = "".join(f"<th>{h}</th>" for h in ("verdict", "property", "of bound", "calls", ""))
        return (f"<!doctype html><meta charset=utf-8><title>{html.escape(self.name)}</title>"
                f"<style>{writers.STYLE}.FAIL{{color:#b00020;font-weight:bold}}"
                f".limit{{color:#8a6d00}}</style><h1>{html.escape(self.name)}</h1>"
                f"<p>{html.escape(self.summary())}</p><p>{html.escape(told)}</p>"
                f"<table><tr>{heads}</tr>{rows}</table>\n")


def share_of(v):
    """The largest error as a share of its bound, in words."""
    is_known = v.level != NOT_TRIED and math.isfinite(v.share) and v.share > 0
    return f"{v.share:.2g}" if is_known else ""


def html_row(v):
    kind = {FAIL: "FAIL", LIMIT: "limit"}.get(v.level, "")
    text = html.escape(v.title)
    if v.words:
        text += f"<br>{html.escape(v.words)}"
    if v.level in (FAIL, LIMIT):
        text += "".join(f"<br>also: {html.escape(words)}" for words in v.also[:2])
        text += f"<br>case {v.number}: {html.escape(v.case)}<pre>{html.escape(v.command)}</pre>"
    return f'<tr><td class="{kind}">{v.level}</td><td>{html.escape(v.name)}</td>' \
        f"<td>{share_of(v)}</td><td>{v.calls}</td><td>{text}</td></tr>"

"""The findings of a judge: counts, findings, and a table of ops."""
from collections import Counter
from dataclasses import asdict, dataclass, field


@dataclass
class Finding:
    """A result that rounding does not explain, at its worst element."""

    op: str
    module: str
    phase: str
    line: str
    step: int
    call: int  # number of the op in its step
    output: str
    index: tuple
    got: float
    expected: float
    bound: float
    wrong: int
    elements: int
    pattern: str
    shapes: list
    types: list
    device: str
    doubt: str = ""  # why a result is suspect; empty for a finding
    dump: str = ""

    def text(self):
        where = self.module or "(no module)"
        head = f"{self.op}  in {where}, {self.phase}" + (f", {self.line}" if self.line else "")
        size = f"off by {abs(self.got - self.expected):.3g}, {self.times():.3g} times the bound"
        lines = [head, f"  {self.output}{list(self.index)}: got {self.got:.9g}, expected "
                 f"{self.expected:.9g} ± {self.bound:.3g} ({size})",
                 f"  {self.wrong} of {self.elements} elements: {self.pattern}",
                 f"  {', '.join(self.types)} {' '.join(map(str, self.shapes))} on {self.device}, "
                 f"op {self.call} of step {self.step}"]
        if self.doubt:
            lines.append(f"  suspect: {self.doubt}")
        if self.dump:
            lines.append(f"  alone: python {self.dump}")
        return "\n".join(lines)

    def times(self):
        error = abs(self.got - self.expected)
        return error / self.bound if self.bound > 0 else float("inf")


@dataclass
class Row:
    """All calls of an op in one module and phase."""

    op: str
    module: str
    phase: str
    calls: int = 0
    share: float = 0.0  # the largest error as a share of its bound
    power: float = 0.0  # the widest bound as a share of the values
    blind: int = 0
    suspect: int = 0
    wrong: int = 0

    def verdict(self):
        if self.wrong:
            return "WRONG"
        return "suspect" if self.suspect else "blind" if self.blind else "ok"


@dataclass
class Report:
    """`ok` is true if no judged result is beyond its bound. `judged` counts ops that were judged,
    `not_judged` says by op and reason how many were not."""

    judged: int = 0
    findings: list = field(default_factory=list)
    suspect: list = field(default_factory=list)
    blind: int = 0
    not_judged: Counter = field(default_factory=Counter)  # of (op, reason)
    classes: Counter = field(default_factory=Counter)  # of (op, class of kernels)
    passed_by: Counter = field(default_factory=Counter)  # views, empty memory: nothing to judge
    rows: dict = field(default_factory=dict)
    strangers: int = 0  # threads that began before the judge and ran modules
    norms: list = field(default_factory=list)  # of NormModule
    norms_left: int = 0  # kinds of modules for which there was no time
    steps: int = 0
    seconds: float = 0.0

    @property
    def ok(self):
        return not self.findings

    def row(self, op, place):
        key = op, place.module, place.phase
        return self.rows.setdefault(key, Row(*key))

    def ranked(self):
        """Rows, those nearest to their bounds first."""
        return sorted(self.rows.values(), key=lambda row: -row.share)

    def missing(self):
        """How many ops were not judged, but could have been with a rule or a wider judge."""
        return sum(self.not_judged.values())

    def is_complete(self):
        """Whether no op is known that was not judged."""
        return not self.missing() and not self.strangers

    def differing(self):
        """Norms whose formula is not the one that their name says."""
        return [norm for norm in self.norms if norm.differs]

    def summary(self):
        text = (f"{self.judged} ops judged in {self.steps} steps: {len(self.findings)} wrong, "
                f"{len(self.suspect)} suspect, {self.blind} blind; {self.missing()} not judged")
        others = ", ".join(dict.fromkeys(norm.kind for norm in self.differing()))
        return text + (f"; not what the name says: {others}" if others else "")

    def formulas(self):
        """Names the norms of the program, because right ops may make a wrong formula."""
        lines = ["formulas are not checked, but what modules that look like norms compute:"
                 if self.norms else "formulas are not checked: right ops may make a wrong one"]
        lines += ["  " + norm.text() for norm in self.norms]
        lines += [f"  {self.norms_left} more kinds of modules: no time"] if self.norms_left else []
        return lines

    def text(self, rank=False):
        parts = [finding.text() for finding in self.findings + self.suspect]
        if rank:
            parts.append(self.table())
        parts += [f"not judged: {op}, {count} times: {reason}"
                  for (op, reason), count in sorted(self.not_judged.items())]
        if self.strangers:
            parts.append(f"not judged, nor counted: ops of {self.strangers} threads that had begun "
                         "before the judge")
        parts += [f"holds only for kernels with {kind}: {op}, {count} times"
                  for (op, kind), count in sorted(self.classes.items())]
        return "\n".join([*parts, *self.formulas(), self.summary()])

    def table(self):
        lines = [f"{'op':32} {'phase':9} {'calls':>6} {'of bound':>9} {'power':>8}  "
                 "verdict  module"]
        lines += [f"{r.op:32} {r.phase:9} {r.calls:6} {r.share:9.3g} {r.power:8.1e}  "
                  f"{r.verdict():8} {r.module}" for r in self.ranked()]
        return "\n".join(lines)

    def as_dict(self):
        return {"ok": self.ok, "judged": self.judged, "steps": self.steps, "blind": self.blind,
                "seconds": self.seconds, "findings": [asdict(f) for f in self.findings],
                "suspect": [asdict(f) for f in self.suspect],
                "not_judged": [{"op": op, "reason": reason, "count": count}
                               for (op, reason), count in sorted(self.not_judged.items())],
                "classes": [{"op": op, "kernels": kind, "count": count}
                            for (op, kind), count in sorted(self.classes.items())],
                "strangers": self.strangers, "norms_left": self.norms_left,
                "norms": [norm.as_dict() for norm in self.norms],
                "rows": [asdict(row) | {"verdict": row.verdict()} for row in self.ranked()]}

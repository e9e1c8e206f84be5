"""Reports as JSON, JUnit and HTML."""
import html
import json
import math
from xml.sax.saxutils import escape, quoteattr


def finite(value):
    """JSON has no infinity: such numbers become text."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def as_json(report):
    return json.dumps(finite(report.as_dict()), indent=1) + "\n"


def as_junit(report):
    """A test case for every op, module and phase: failed if wrong, skipped if blind, suspect or
    not judged. And one for every norm, skipped if it is not what its name says."""
    cases = [case(row, report) for row in report.ranked()]
    cases += [f'<testcase classname="not judged" name={quoteattr(op)}>'
              f'<skipped message={quoteattr(reason)}/></testcase>'
              for op, reason in sorted(report.not_judged)]
    cases += [f'<testcase classname="formulas" name={quoteattr(norm.kind)}>'
              + (f"<skipped message={quoteattr(norm.text())}/>" if norm.differs else "")
              + "</testcase>" for norm in report.norms]
    wrong = sum(row.wrong > 0 for row in report.rows.values())
    return suite("keel_judge", cases, wrong, report.seconds)


def suite(name, cases, failures, seconds):
    """A file of JUnit with these cases."""
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<testsuite name="{name}" tests="{len(cases)}" failures="{failures}" '
            f'time="{seconds:.3f}">\n' + "\n".join(cases) + "\n</testsuite>\n")


def case(row, report):
    name = f"{row.op} {row.phase}"
    head = f"<testcase classname={quoteattr(row.module or 'no module')} name={quoteattr(name)}>"
    if row.verdict() == "ok":
        return head + "</testcase>"
    if row.verdict() != "WRONG":
        return head + f"<skipped message={quoteattr(row.verdict())}/></testcase>"
    texts = [f.text() for f in report.findings
             if (f.op, f.module, f.phase) == (row.op, row.module, row.phase)]
    return head + f"<failure message={quoteattr(texts[0].partition(chr(10))[0])}>" \
        + escape("\n".join(texts)) + "</failure></testcase>"


STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
table{border-collapse:collapse}
td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #ddd}
pre{background:#f6f6f6;padding:.8rem;overflow:auto}.WRONG{color:#b00020;font-weight:bold}
.suspect,.blind{color:#8a6d00}"""
HEADS = ("op", "module", "phase", "calls", "of bound", "power", "verdict")


def as_html(report):
    findings = "".join(f"<pre>{html.escape(f.text())}</pre>" for f in report.findings)
    doubts = "".join(f"<pre>{html.escape(f.text())}</pre>" for f in report.suspect)
    heads = "".join(f"<th>{name}</th>" for name in HEADS)
    rows = "".join(table_row(row) for row in report.ranked())
    missing = "".join(f"<li>{html.escape(op)}, {count} times: {html.escape(reason)}</li>"
                      for (op, reason), count in sorted(report.not_judged.items()))
    norms = "".join(f"<li>{html.escape(norm.text())}</li>" for norm in report.norms)
    return (f"<!doctype html><meta charset=utf-8><title>keel_judge</title><style>{STYLE}</style>"
            f"<h1>keel_judge</h1><p>{html.escape(report.summary())}</p>"
            f"<h2>Wrong</h2>{findings or '<p>nothing</p>'}"
            f"<h2>Suspect</h2>{doubts or '<p>nothing</p>'}"
            f"<h2>Norms</h2><p>Formulas are not checked, but what norms compute.</p>"
            f"<ul>{norms or '<li>none</li>'}</ul>"
            f"<h2>Ops</h2><table><tr>{heads}</tr>{rows}</table>"
            f"<h2>Not judged</h2><ul>{missing or '<li>nothing</li>'}</ul>\n")


def table_row(row):
    verdict = row.verdict()
    cells = (row.op, row.module, row.phase, row.calls, f"{row.share:.3g}", f"{row.power:.1e}")
    return "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in cells) \
        + f'<td class="{verdict}">{verdict}</td></tr>'

#!/usr/bin/env python3
"""Writes the page and the JSON of a call of tools/gpu.

usage: tools/gpu_report.py PHASE WORK OUT    WORK: results.tsv (code, seconds, title) and logs/
"""
import datetime
import json
import pathlib
import re
import sys

MOST_NODES = 6  # of a step, the slowest first


def log_of(work, title):
    return work / "logs" / (re.sub(r"[^A-Za-z0-9]+", "-", title) + ".txt")


def median(times):
    return times["median"]


def norm_rows(norms):
    yield "| norm | shape | forward us | of a copy | backward us | of a copy | PyTorch / keel |"
    yield "|---|---|---|---|---|---|---|"
    for norm in norms:
        shape = "x".join(map(str, norm["shape"]))
        if "refusal" in norm:
            yield f"| {norm['norm']} | {shape} | {norm['refusal']} |||||"
            continue
        cells = []
        for name in ("forward", "backward"):
            of = norm[name]
            cells += [f"{median(of['seconds']) * 1e6:.1f}", f"{of['ratio']:.2f}"]
        ratio = f"{norm['torch']['ratio']:.2f}" if "torch" in norm else "-"
        yield f"| {norm['norm']} | {shape} | {' | '.join(cells)} | {ratio} |"


def step_rows(of):
    """A step's time, what its products reach, PyTorch's time, and the slowest nodes."""
    products = median(of["products"])
    yield (f"step {median(of['step']) * 1e3:.3f} ms, products {products * 1e3:.3f} ms at "
           f"{of['products_flop'] / products / 1e12:.1f} TFLOP/s, optimizer "
           f"{median(of['optimizer']) * 1e3:.3f} ms")
    for name, mode in of.get("torch", {}).get("modes", {}).items():
        said = (f"{median(mode['seconds']) * 1e3:.3f} ms" if "seconds" in mode
                else mode.get("refusal", "not measured"))
        yield f"PyTorch, {name}: {said}"
    for node in sorted(of["profile"], key=lambda n: -n["nanoseconds"])[:MOST_NODES]:
        yield f"    {node['nanoseconds'] / 1e3:9.1f} us {node['op']} {node['node']}"


def measured(work, title):
    """What a step of measure gave: the JSON of `keel bench`, or the lines of its log."""
    path = log_of(work, title).with_suffix(".json")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def page(phase, work, results, made):
    yield f"# {phase}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC\n"
    machine = (work / "logs/machine.txt").read_text(encoding="utf-8", errors="replace")
    yield f"```\n{machine.rstrip()}\n```\n"
    yield "| code | s | what |\n|---|---|---|"
    for code, seconds, title in sorted(results):
        yield f"| {code} | {seconds} | {title} |"
    for _, _, title in results:
        of = made.get(title)
        if of is not None:
            yield f"\n## {title}\n"
            yield from norm_rows(of["norms"]) if "norms" in of else step_rows(of)
    for code, _, title in results:
        log = log_of(work, title)
        shown = code not in ("0", "left out") or phase == "measure" and title not in made
        if shown and log.exists():
            end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:]
            yield f"\n## {code}: {title}\n\n```"
            yield from end
            yield "```"


def main():
    phase, work, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    lines = (work / "results.tsv").read_text(encoding="utf-8").splitlines()
    results = [tuple(line.split("\t")) for line in lines]
    found = {title: measured(work, title) for _, _, title in results}
    made = {title: of for title, of in found.items() if of is not None}
    text = "\n".join(page(phase, work, results, made)) + "\n"
    (out / f"{phase}.md").write_text(text, encoding="utf-8")
    steps = [{"title": title, "code": code, "seconds": int(seconds), "bench": made.get(title)}
             for code, seconds, title in results]
    (out / f"{phase}.json").write_text(json.dumps({"phase": phase, "steps": steps}, indent=1),
                                       encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

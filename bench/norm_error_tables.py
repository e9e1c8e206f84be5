"""The tables of bench/norm_errors.py: a CSV file with every input, and its summary in Markdown,
which is made from the lines of the CSV."""
import csv
import io

# A group of results, and the measure of their error.
ERRORS = {"y": (("y",), "units"), "dx, dgain, dbias": (("dx", "dgain", "dbias"), "units"),
          "y, absolute": (("y",), "absolute")}
LIMITS = {"y": 16, "dx, dgain, dbias": 64}
COLUMNS = ("norm", "type", "error", "input")
VERDICT = "keel's bound"
# How the inputs of a kind begin.
KINDS = {"mean up to 2^23 deviations": ("mean",), "x from subnormal to 3e38": ("x ",),
         "all x alike": ("all x",), "one huge x": ("one x",),
         "dy from 1e-38 to 3e38": ("dy", "one dy")}


def holds(row):
    return row["finite"] and row["units"] <= row["bound"]


def cell(rows, measure):
    if not rows:
        return "-"
    if not all(row["finite"] for row in rows):
        return "not finite"
    value = max(row[measure] for row in rows)
    return f"{value:.2g}" if value < 100 and measure == "units" else f"{value:.1e}"


def lines_of(own, libraries):
    """A line for each input: the worst of some results, and for keel whether its bound holds."""
    for error, (results, measure) in ERRORS.items():
        for name in dict.fromkeys(row["case"] for row in own):
            rows = [row for row in own if row["case"] == name and row["result"] in results]
            of = {library: [row for row in rows if row["library"] == library]
                  for library in libraries}
            kept = of.get("keel")
            verdict = "-" if not kept else "holds" if all(map(holds, kept)) else "exceeded"
            yield {"error": error, "input": name, VERDICT: verdict,
                   **{library: cell(rows, measure) for library, rows in of.items()}}


def full(found, libraries):
    """The lines of the CSV file."""
    for norm, dtype in dict.fromkeys((row["norm"], row["type"]) for row in found):
        own = [row for row in found if (row["norm"], row["type"]) == (norm, dtype)]
        yield from ({"norm": norm, "type": dtype, **line} for line in lines_of(own, libraries))


def to_csv(lines, libraries):
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *libraries, VERDICT], lineterminator="\n",
                            extrasaction="ignore")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def from_csv(text):
    """The lines of a CSV file and the libraries of its columns."""
    reader = csv.DictReader(io.StringIO(text))
    return list(reader), [name for name in reader.fieldnames if name not in (*COLUMNS, VERDICT)]


def merged(files):
    """The lines and libraries of several CSV files as one: a column for each library, "-" where no
    file has it."""
    libraries = list(dict.fromkeys(name for _, names in files for name in names))
    lines = {}
    for own, names in files:
        for line in own:
            key = tuple(line[column] for column in COLUMNS)
            there = lines.setdefault(key, {**dict(zip(COLUMNS, key)), VERDICT: "-",
                                           **dict.fromkeys(libraries, "-")})
            there |= {name: line[name] for name in names}
            there[VERDICT] = line[VERDICT] if line[VERDICT] != "-" else there[VERDICT]
    return list(lines.values()), libraries


def counted(cells, limit):
    """For how many inputs a library stays within the limit."""
    there = [c for c in cells if c != "-"]
    within = [c for c in there if c != "not finite" and float(c) <= limit]
    return f"{len(within)} of {len(there)}" if there else "-"


def worst(cells):
    there = [c for c in cells if c != "-"]
    lost = there.count("not finite")
    return "-" if not there else f"{lost} not finite" if lost else max(there, key=float)


def head(names, libraries):
    yield f"| {' | '.join([*names, *libraries])} |"
    yield "|---" * (len(names) + len(libraries)) + "|"


def summary(lines, libraries):
    """For each norm the inputs within keel's bounds, and the worst errors of y by kind of input."""
    yield from head(["norm", "results"], libraries)
    pairs = dict.fromkeys((line["norm"], line["type"]) for line in lines)
    for norm, dtype in pairs:
        for error, limit in LIMITS.items():
            own = [line for line in lines if (line["norm"], line["type"], line["error"])
                   == (norm, dtype, error)]
            limit = limit if dtype == "float32" else 0.5 + limit * 2.0**-16
            cells = [counted([line[library] for line in own], limit) for library in libraries]
            yield f"| {norm}, {dtype} | {error} | {' | '.join(cells)} |"
    yield ""
    yield from head(["norm", "input"], libraries)
    for norm, dtype in pairs:
        for kind, starts in KINDS.items():
            own = [line for line in lines if (line["norm"], line["type"], line["error"])
                   == (norm, dtype, "y") and line["input"].startswith(starts)]
            if own:
                cells = [worst([line[library] for line in own]) for library in libraries]
                yield f"| {norm}, {dtype} | {kind} | {' | '.join(cells)} |"

#!/usr/bin/env python3
"""Measures the errors of norms in several libraries against exact results.

usage: bench/norm_errors.py [--env DIR] [--json FILE] [--csv FILE] [--markdown FILE]
                            [--norms LayerNorm,...] [--types float32,bf16] [--shapes 64x48,...]
                            [--cases TEXT] [--libraries keel,...]
       bench/norm_errors.py --summary CSV
       bench/norm_errors.py --merge CSV,... --csv FILE [--libraries keel,...]

Layer, RMS, group and batch norm run forward and backward on hard inputs, float32 and bf16, in keel
(keel_norms.torch), PyTorch, JAX, flax, MLX and ONNX Runtime, on the CPU. --env makes a virtual
environment in DIR (build/norm-peers will do), installs those of these libraries that it lacks, and
measures with its Python; without --env the libraries that this Python lacks are left out. --cases
chooses the cases whose names have the text in them. KEEL_NORM_LIBRARY names keel's library, or else
build/ has it.

The CSV has a line for each norm, type, input and measure. A cell is the worst error of all shapes
and elements in units of its scale's rounding (docs/numerics.md, "Norms"): 2^-23, in bf16 2^-7. The
Markdown has a summary: for how many inputs a library stays within keel's bounds, and its worst
errors. --summary prints that of a CSV file and measures nothing; --merge makes one CSV file of
those of several runs, of other libraries or types. Exit code 1: keel exceeds what it promises."""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHAPES = "64x48,8x4096"
PACKAGES = {"numpy": "numpy", "torch": "torch", "mpmath": "mpmath", "jax": "jax", "flax": "flax",
            "mlx.core": "mlx" if platform.system() == "Darwin" else "mlx[cpu]", "onnx": "onnx",
            "onnxruntime": "onnxruntime"}


def enter(folder):
    """Continues with the Python of a virtual environment, which it makes if need be."""
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    find = "import importlib.util, sys; print(*(importlib.util.find_spec(m) is None " \
           "for m in sys.argv[1:]))"
    lacking = subprocess.run([python, "-c", find, *(m.split(".")[0] for m in PACKAGES)],
                             capture_output=True, text=True, check=True).stdout.split()
    missing = [package for package, lacks in zip(PACKAGES.values(), lacking) if lacks == "True"]
    if missing:
        print(f"[norm_errors] installing {', '.join(missing)}", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "--quiet", "install", *missing], check=True)
    os.execv(python, [str(python), *sys.argv])


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    facts = {k.strip(): v for k, v in (line.split(": ", 1) for line in lines if ": " in line)}
    return f"{facts.get('model name', platform.machine())}, family {facts.get('cpu family')}, " \
           f"model {facts.get('model')}"


def loaded(names):
    """Steps and versions of the libraries that this Python has."""
    from norm_error_libraries import LIBRARIES, version
    steps, versions = {}, {}
    for name in names or LIBRARIES:
        make, package = LIBRARIES[name]
        try:
            steps[name], versions[name] = make(), version(package)
        except ImportError as fault:
            print(f"[norm_errors] without {name}: {fault}", file=sys.stderr)
    return steps, versions


def errors_of(step, norm, dtype, inputs):
    """The worst errors of a library by result: none if it does not have the norm so, or refuses
    the input."""
    import norm_error_cases as cases
    worst = {}
    for given, expected, scales in inputs:
        try:
            found = step(norm, given, dtype) or {}
        except (ValueError, RuntimeError) as fault:
            print(f"[norm_errors] {norm}: {str(fault).splitlines()[0]}", file=sys.stderr)
            return {}
        for result, value in found.items():
            error = cases.error((value, expected[result], scales[result]), result, dtype,
                                len(given.x))
            worst.setdefault(result, cases.Error()).add(error)
    return worst


def measure(steps, norm, dtype, args):
    """A list of objects, one for each case, library and result, and how far the exact results are
    from more digits."""
    import norm_error_cases as cases
    found, distance = [], 0.0
    for name in cases.CASES:
        if args.cases not in name or not cases.fits(name, dtype):
            continue
        given = [cases.inputs(name, shape, dtype) for shape in args.shapes]
        inputs = [(one, *cases.exact(norm, one)) for one in given]
        distance = max(distance, cases.distance_from_digits(given[0]))
        for library, step in steps.items():
            found += [{"norm": norm, "type": dtype, "case": name, "library": library,
                       "result": result, "finite": e.finite,
                       "units": e.units if e.finite else None,
                       "absolute": e.absolute if e.finite else None,
                       "bound": cases.bound(result, dtype)}
                      for result, e in errors_of(step, norm, dtype, inputs).items()]
    return found, distance


def page_of(found, facts, libraries):
    """The page of results: what was measured, and a summary of its lines."""
    import norm_error_tables as tables
    shapes = ", ".join("x".join(map(str, shape)) for shape in facts["shapes"])
    yield (f"{facts['processor']}. "
           + "; ".join(f"{k} {v}" for k, v in facts["versions"].items())
           + f". Shapes {shapes}; GroupNorm has {facts['groups']} groups. The exact results are "
           f"within {facts['distance_from_400_bits']:.1e} units of 400 bits.")
    yield ""
    yield from tables.summary(list(tables.full(found, libraries)), libraries)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--summary", type=pathlib.Path)
    parser.add_argument("--merge", type=lambda text: [pathlib.Path(p) for p in text.split(",")])
    parser.add_argument("--norms", default="LayerNorm,RMSNorm,GroupNorm,BatchNorm")
    parser.add_argument("--types", default="float32,bf16")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--cases", default="")
    parser.add_argument("--libraries")
    args = parser.parse_args()
    if args.merge and not args.csv:
        parser.error("--merge needs --csv")
    args.shapes = [tuple(map(int, text.split("x"))) for text in args.shapes.split(",")]
    return args


def write(found, facts, libraries, args):
    import norm_error_tables as tables
    if args.json:
        args.json.write_text(json.dumps({**facts, "errors": found}, indent=1) + "\n")
    if args.csv:
        args.csv.write_text(tables.to_csv(tables.full(found, libraries), libraries))
    if args.markdown:
        args.markdown.write_text("\n".join(page_of(found, facts, libraries)) + "\n")


def merge(paths, args):
    """Writes one CSV file of several, with the libraries in the order of --libraries."""
    import norm_error_tables as tables
    lines, libraries = tables.merged([tables.from_csv(path.read_text()) for path in paths])
    libraries = args.libraries.split(",") if args.libraries else libraries
    args.csv.write_text(tables.to_csv(lines, libraries))


def main():
    args = parsed()
    sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "plugin/python")]
    import norm_error_tables as tables
    if args.summary:
        print("\n".join(tables.summary(*tables.from_csv(args.summary.read_text()))))
        return 0
    if args.merge:
        merge(args.merge, args)
        return 0
    if args.env and pathlib.Path(sys.prefix) != args.env.absolute():
        enter(args.env)
    os.environ.setdefault("KEEL_NORM_LIBRARY", str(ROOT / "build/plugin/c/libkeel_norm.so"))
    import norm_error_cases as cases
    steps, versions = loaded(args.libraries and args.libraries.split(","))
    facts = {"processor": processor(), "versions": versions, "shapes": args.shapes,
             "groups": cases.GROUPS}
    facts["distance_from_400_bits"], found = 0.0, []
    for dtype in args.types.split(","):
        for norm in args.norms.split(","):
            more, distance = measure(steps, norm, dtype, args)
            facts["distance_from_400_bits"] = max(facts["distance_from_400_bits"], distance)
            found += more
            print(f"[norm_errors] {norm} {dtype}", file=sys.stderr)
            write(found, facts, list(steps), args)
    if not args.markdown:
        print("\n".join(page_of(found, facts, list(steps))))
    return 0 if all(tables.holds(row) for row in found if row["library"] == "keel") else 1


if __name__ == "__main__":
    sys.exit(main())

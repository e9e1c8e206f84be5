#!/usr/bin/env python3
"""Prints the acid test's verdicts of libraries' norms as they ship, for bench/results/norm-acid.md.

usage: acid_table.py [--quick] [--only PATTERN] [--timeout SECONDS] [--jobs FOLDER]

Each norm is tried as `keel-judge norm` does, in a process of its own. A library that is not
installed has no row. FOLDER keeps the reports as JSON; rows that are there are not run again."""
import argparse
import fnmatch
import importlib.metadata
import json
import os
import pathlib
import platform
import tempfile

import settings

from keel_judge import acid, norm_command

# distribution: [(what is shown, the callable, options)].
JAX, OWN = ["--adapter", "jax"], "acid_libraries:"
FEW = ["--most-rows", "200", "--skip", "threads"]  # an interpreter takes a millisecond a row
LIBRARIES = {
    "torch": [("F.layer_norm", "torch.nn.functional.layer_norm", []),
              ("F.rms_norm", "torch.nn.functional.rms_norm", []),
              ("F.batch_norm", "torch.nn.functional.batch_norm", []),
              ("F.group_norm", "torch.nn.functional.group_norm", []),
              ("F.instance_norm", "torch.nn.functional.instance_norm", []),
              ("F.layer_norm, compiled", f"{OWN}compiled_layer_norm", []),
              ("F.rms_norm, compiled", f"{OWN}compiled_rms_norm", [])],
    "jax": [("jax.nn.standardize", f"{OWN}jax_standardize", ["--as", "layernorm", *JAX])],
    "flax": [("linen.LayerNorm", f"{OWN}flax_layer_norm", JAX),
             ("linen.LayerNorm, use_fast_variance=False", f"{OWN}flax_layer_norm_two_pass", JAX),
             ("linen.RMSNorm", f"{OWN}flax_rms_norm", JAX)],
    "equinox": [("nn.LayerNorm", f"{OWN}equinox_layer_norm", JAX),
                ("nn.RMSNorm", f"{OWN}equinox_rms_norm", JAX)],
    "keras": [("ops.layer_normalization, on JAX", f"{OWN}keras_layer_norm", JAX)],
    "mlx": [("fast.layer_norm", f"{OWN}mlx_layer_norm", ["--adapter", "mlx"]),
            ("fast.rms_norm", f"{OWN}mlx_rms_norm", ["--adapter", "mlx"])],
    "onnxruntime": [("LayerNormalization", f"{OWN}ort_layer_norm", ["--adapter", "onnx"]),
                    ("RMSNormalization", f"{OWN}ort_rms_norm", ["--adapter", "onnx"])],
    "liger_kernel": [("LigerLayerNorm, interpreted", f"{OWN}liger_layer_norm", FEW),
                     ("LigerRMSNorm, interpreted", f"{OWN}liger_rms_norm", FEW)],
    "keel_norms": [("torch.functional.layer_norm", f"{OWN}keel_layer_norm", []),
                   ("torch.functional.rms_norm", f"{OWN}keel_rms_norm", []),
                   ("torch.functional.group_norm", f"{OWN}keel_group_norm",
                    ["--as", "groupnorm"])],
}
SHOWN = {"forward": "y", "dx": "dx", "dgain": "dgain", "means": "means", "range": "range",
         "special rows": "special", "inf and NaN": "NaN", "digits": "digits", "rows": "rows",
         "threads": "threads", "strides": "strides", "guards": "guards", "sizes": "sizes",
         "frozen inputs": "frozen", "in place": "in place", "double backward": "2nd",
         "types": "types"}
MARKS = {"pass": "pass", "limit": "limit", "FAIL": "**FAIL**", "not tried": "-"}


def version_of(library):
    try:
        return importlib.metadata.version("mlx" if library == "mlx" else library)
    except importlib.metadata.PackageNotFoundError:
        found = importlib.util.find_spec(library)
        return "of this tree" if found else None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def report_of(name, options, given):
    """The report of one norm as a dictionary."""
    folder = pathlib.Path(given.jobs or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name.replace(":", ".") + ".json")
    if not path.exists():
        words = [name, *options, "--timeout", str(given.timeout)] + ["--quick"] * given.quick
        command = norm_command.parser().parse_args(words)
        path.write_text(acid(name, **norm_command.options_of(command)).as_json(),
                        encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def row_of(library, shown, report):
    levels = {v["name"]: v["level"] for v in report["verdicts"]}  # without those of --skip
    cells = [MARKS[levels.get(name, "not tried")] for name in SHOWN]
    return f"| {library} | {shown} | {' | '.join(cells)} |"


def words_of(report):
    return [f"  - {v['name']}, {v['level']}: {v['words']}" for v in report["verdicts"]
            if v["level"] in ("FAIL", "limit")]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="*")
    p.add_argument("--timeout", type=float, default=600)
    p.add_argument("--jobs")
    given = p.parse_args()
    print(f"Processor: {processor()}, {os.cpu_count()} cores; Python {platform.python_version()}")
    print(f"\n| library | norm | {' | '.join(SHOWN.values())} |\n|{'---|' * (2 + len(SHOWN))}")
    details = []
    for library, norms in LIBRARIES.items():
        version = version_of(library)
        for shown, name, options in norms if version else ():
            if not fnmatch.fnmatch(name, given.only):
                continue
            report = report_of(name, options, given)
            print(row_of(f"{library} {version}", shown, report), flush=True)
            details += [f"- {library}, {shown} ({report['calls']} calls):", *words_of(report)]
    print("\n" + "\n".join(details))


if __name__ == "__main__":
    assert settings.ROOT
    main()

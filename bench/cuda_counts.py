#!/usr/bin/env python3
"""What CUDA's kernels do, counted without a GPU.

usage: bench/cuda_counts.py BUILD [NORM ...] [--shapes 4096x512,...] [--json FILE]
       bench/cuda_counts.py BUILD --step MODEL [KEY=VALUE ...]

The program with CUDA runs each norm's forward and backward under tests/ptx' interpreter, which
counts launches, instructions of warps, sectors of memory and conflicts of banks. Beside what the
kernels of a pass read and write stands the fewest bytes that it must move. Counts are no times:
what ptxas, caches and schedulers do is not in them.

--step  the kernels of a model's training step instead; products are not among them, since they
        are cuBLASLt's
--json  writes all that was counted
Exit code: 0, whatever was counted; 77 without a build of CUDA.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SECTOR = 32  # bytes


def short(kernel):
    """The name of a kernel without its types."""
    done = subprocess.run(["c++filt", "-p", kernel], capture_output=True, text=True, check=False)
    text, depth, kept = done.stdout.strip() or kernel, 0, ""
    text = text.replace("(anonymous namespace)::", "")
    for letter in text:
        depth += letter == "<"
        kept += letter if depth == 0 else ""
        depth -= letter == ">"
    return kept.split("(")[0].split("::")[-1].split(" ")[-1]


def program_of(build):
    """The program with CUDA, whether it is `keel` itself or stands beside it."""
    return next(build / name for name in ("keel_cuda", "keel") if (build / name).exists())


def run(build, passes, *words):
    """The output of `keel bench`, or an error as a string; and the launches of the first passes."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "counts")
        path.touch()
        done = subprocess.run(
            [program_of(build), "bench", *words, "--backend", "cuda", "--rounds", "3", "--json"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "LD_PRELOAD": str(build / "tests/ptx/libkeel_ptx.so"),
                 "KEEL_PTX_COUNT": str(path), "KEEL_PTX_PASSES": str(passes)})
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["no reason given"])[-1], []
        found = collections.defaultdict(list)
        for line in path.read_text(encoding="utf-8").splitlines():
            launch = json.loads(line)
            found[launch["pass"]].append(launch)
        return json.loads(done.stdout), [found[number] for number in sorted(found)]


def count(build, norm, shape):
    """The launches of a norm's forward and backward, and the fewest bytes of each; or a refusal."""
    printed, passes = run(build, 2, "norms", norm, "--shapes", shape)
    row = {"refusal": printed} if isinstance(printed, str) else printed["norms"][0]
    if "refusal" in row:
        return row["refusal"]
    if len(passes) != 2:
        return f"{len(passes)} passes were counted, 2 are"
    return {name: (row[name]["bytes"], launches)
            for name, launches in zip(("forward", "backward"), passes)}


def sums(launches):
    """Sums over launches: instructions of warps, KiB that a launch reads or writes, each once, KiB
    that it reads again, sectors beyond those that the elements asked for fill, KiB of local memory,
    conflicts of banks."""
    def total(*keys):
        return sum(launch[key] for launch in launches for key in keys)
    return (sum(sum(launch["instructions"].values()) for launch in launches),
            total("from_memory", "from_earlier", "to_memory") * SECTOR >> 10,
            total("again_own", "again_other") * SECTOR >> 10, total("wasted_sectors"),
            total("local_sectors") * SECTOR >> 10, total("conflicts"))


COLUMNS = ("launches | instructions | KiB moved | KiB again | sectors in vain | KiB local | "
           "conflicts")


def row(cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def head(*names):
    return row([*names, COLUMNS]) + "\n|" + "---|" * (len(names) + COLUMNS.count("|") + 1)


def print_norms(build, args):
    print(head("norm", "shape", "pass", "fewest KiB"), flush=True)
    cases = [(norm, shape) for norm in args.norms or norms_of(build)
             for shape in args.shapes.split(",")]
    kept = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, counted in zip(cases, pool.map(lambda case: count(build, *case), cases)):
            if isinstance(counted, str):
                print(row([*case, f"refused: {counted}"]), flush=True)
                continue
            kept.append({"norm": case[0], "shape": case[1], "passes": counted})
            for name, (fewest, launches) in counted.items():
                print(row([*case, name, fewest >> 10, len(launches), *sums(launches)]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(kept), encoding="utf-8")
    return 0


def norms_of(build):
    """All norms; those with groups have one, which every width allows."""
    text = subprocess.run([program_of(build), "list", "norms", "--json"], capture_output=True,
                          text=True, check=True).stdout
    return [norm["norm"] + "{groups=1}" * ("groups=" in norm["defaults"])
            for norm in json.loads(text) if norm["norm"] != "none"]


def print_step(build, args):
    printed, passes = run(build, 1, "step", args.step[0], *[word for setting in args.step[1:]
                                                             for word in ("--set", setting)])
    if isinstance(printed, str):
        print(printed, file=sys.stderr)
        return 1
    kernels = collections.defaultdict(list)
    for launch in passes[0]:
        kernels[short(launch["kernel"])].append(launch)
    rows = [(name, len(launches), *sums(launches)) for name, launches in kernels.items()]
    print(head("kernel"), *map(row, sorted(rows, key=lambda cells: -cells[2])), sep="\n")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("norms", nargs="*")
    parser.add_argument("--shapes", default="4096x512,1024x1024,128x1000,8x400")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--step", nargs="+", metavar=("MODEL", "KEY=VALUE"))
    args = parser.parse_args()
    build = args.build.resolve()
    if not (build / "tests/ptx/libkeel_ptx.so").exists():
        print("cuda_counts: skipped, for CUDA is not built (tests/ptx/check_cuda.py builds it)")
        return 77
    return print_step(build, args) if args.step else print_norms(build, args)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A model of how long CUDA's kernels take, from what they do, without a GPU.

usage: bench/cuda_model.py BUILD [NORM ...] [--shapes 4096x512,...] [--json FILE] [--kernels]
       bench/cuda_model.py BUILD --step MODEL [KEY=VALUE ...]

The program with CUDA runs each norm's forward and backward under tests/ptx' interpreter, which
counts: instructions, sectors of memory, conflicts of banks, and how long a block waits for results.
With what ptxas said of registers and shared memory this gives estimates of each kernel's time, of
which the largest is its own; a pass takes the sum over its kernels. Beside it stands the bound of a
copy of the fewest bytes that the pass must move, and their ratio. It is a model: no GPU was asked,
and what ptxas, caches and schedulers do is not in it.

--step     the kernels of a model's training step instead; products are not among them, since they
           are cuBLASLt's
--kernels  a line for each kernel, with what it is bound by
--json     writes all that was counted
Exit code: 0, whatever the ratios; 77 without a build of CUDA.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SECTOR = 32
WARP = 32
REGISTERS, WARPS, BLOCKS = 65536, 64, 32  # that a multiprocessor has of both: CUDA C++ Programming
                                          # Guide, "Compute Capabilities"
LEAST = 0.8  # of the copy's speed: what is slower is named


@dataclasses.dataclass
class Gpu:
    """Sources. Multiprocessors, bandwidths and clocks: NVIDIA, "A100 Tensor Core GPU Architecture"
    and "H100 Tensor Core GPU Architecture" and their data sheets (A100 80GB SXM, H100 SXM; the
    clock is that of the peak which they name, 19.5 and 67 TFLOP/s of float32). L2: 5120 bytes a
    cycle by the first; of H100 no number is given there, so the same is assumed. Shared memory and
    results a cycle: CUDA C++ Programming Guide, "Compute Capabilities" and "Arithmetic
    Instructions". Arithmetic takes 4 cycles: the same guide, "Multiprocessor Level". Cycles of
    loads: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture",
    arXiv:2402.13499, measured on an A100 and an H100 PCIe."""
    name: str
    architecture: str
    multiprocessors: int
    clock: float       # Hz
    bandwidth: float   # bytes a second
    shared: int        # bytes of a multiprocessor
    rates: dict        # results a cycle and multiprocessor, by class
    latencies: tuple   # cycles of memory, L2, L1, shared memory, arithmetic
    l2: int = 5120     # bytes a cycle


RATES = {"float": 64, "integer": 64, "double": 32, "special": 16, "conversion": 64,
         "wide_conversion": 16, "shuffle": 32, "control": 64}
GPUS = [Gpu("A100", "sm_80", 108, 1.41e9, 2.039e12, 164 << 10, RATES, (466, 262, 38, 29, 4)),
        Gpu("H100", "sm_90", 132, 1.98e9, 3.35e12, 228 << 10,
            {**RATES, "float": 128, "double": 64}, (479, 263, 41, 29, 4))]
PTXAS = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?Used (\d+) registers([^\n]*)",
                   re.DOTALL)


def kernels_by_ptxas(build):
    """(kernel, architecture) -> registers of a thread, bytes of shared memory of a block."""
    found = {}
    for path in (build / "backends/cuda").glob("*.txt"):
        for name, architecture, registers, rest in PTXAS.findall(path.read_text(encoding="utf-8")):
            shared = re.search(r"(\d+) bytes smem", rest)
            found[name, architecture] = int(registers), int(shared[1]) if shared else 0
    return found


def round_up(value, unit):
    return -(-value // unit) * unit


def resident(gpu, threads, registers, shared):
    """How many blocks a multiprocessor runs at once: registers go to warps by 256, shared memory to
    blocks by 128 bytes and one KiB for the system (CUDA's occupancy calculator)."""
    warps = -(-threads // WARP)
    by_registers = REGISTERS // (round_up(max(registers, 16) * WARP, 256) * warps)
    by_shared = gpu.shared // (round_up(shared, 128) + 1024)
    return max(1, min(BLOCKS, WARPS // warps, by_registers, by_shared))


def bounds(gpu, launch, facts):
    """Seconds that a launch takes by the model, by what keeps it."""
    what = launch["kernel"], gpu.architecture
    if what not in facts:
        sys.exit(f"cuda_model: ptxas said nothing of {what[0]} for {what[1]}")
    registers, shared = facts[what]
    at_once = resident(gpu, launch["threads"], registers, shared)
    blocks = launch["blocks"]
    # The multiprocessor that has the most blocks, each of which does the mean of all.
    share = -(-blocks // gpu.multiprocessors) / blocks
    turns = -(-blocks // (gpu.multiprocessors * at_once))
    count = launch["instructions"]
    issued = sum(count.values())
    pipes = {name: count[name] * WARP / rate for name, rate in gpu.rates.items()}
    # A request takes a cycle for each 128 bytes.
    pipes["loads"] = launch["shared_cycles"] + max(
        count["global"] + count["local"],
        (launch["read_sectors"] + launch["written_sectors"] + launch["local_sectors"]) / 4)
    pipe = max(pipes, key=pipes.get)
    from_memory = launch["from_memory"] + launch["to_memory"]
    from_l2 = (launch["from_memory"] + launch["from_earlier"] + launch["again_other"]
               + launch["written_sectors"])
    cycles = launch["cycles"][GPUS.index(gpu)] / blocks
    return {"memory": from_memory * SECTOR / gpu.bandwidth,
            "L2": from_l2 * SECTOR / gpu.l2 / gpu.clock,
            "issue": issued / 4 * share / gpu.clock,
            pipe: pipes[pipe] * share / gpu.clock,
            "latency": turns * cycles / gpu.clock}, at_once * -(-launch["threads"] // WARP)


def copy_bound(gpu, moved):
    """A copy waits for its first load, or for the memory."""
    return max(moved / gpu.bandwidth, gpu.latencies[0] / gpu.clock)


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
    latencies = ";".join(" ".join(map(str, gpu.latencies)) for gpu in GPUS)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "counts")
        path.touch()
        done = subprocess.run(
            [program_of(build), "bench", *words, "--backend", "cuda", "--rounds", "3", "--json"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "LD_PRELOAD": str(build / "tests/ptx/libkeel_ptx.so"),
                 "KEEL_PTX_COUNT": str(path), "KEEL_PTX_PASSES": str(passes),
                 "KEEL_PTX_LATENCIES": latencies})
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


def model(counted, facts):
    """Adds to each pass, by device: what its kernels take, and what a copy does."""
    for moved, launches in counted.values():
        yield [(gpu, [(launch, *bounds(gpu, launch, facts)) for launch in launches],
                copy_bound(gpu, moved)) for gpu in GPUS]


def kernel_line(launch, bound, warps):
    by = max(bound, key=bound.get)
    moved = launch["read_sectors"] + launch["written_sectors"]
    return (f"    {short(launch['kernel'])}: {launch['blocks']} blocks of {launch['threads']}, "
            f"{warps} warps at once, {bound[by] * 1e6:.2f} us by {by} ("
            + ", ".join(f"{name} {value * 1e6:.2f}" for name, value in bound.items())
            + f"); {launch['wasted_sectors']} of {moved} sectors are in vain, read again "
            f"{launch['again_own'] * SECTOR >> 10} KiB by the block, "
            f"{launch['again_other'] * SECTOR >> 10} KiB by others, {launch['conflicts']} of "
            f"{launch['shared_cycles']} cycles of shared memory are conflicts, "
            f"{launch['local_sectors'] * SECTOR >> 10} KiB local")


def step_lines(launches, facts):
    """The kernels of a model's step, the slowest first."""
    kernels = collections.defaultdict(list)
    for launch in launches:
        kernels[short(launch["kernel"])].append(launch)
    rows = []
    for name, own in kernels.items():
        times = [[bounds(gpu, launch, facts)[0] for launch in own] for gpu in GPUS]
        sums = [sum(max(bound.values()) for bound in bounds_of) for bounds_of in times]
        by = collections.Counter(max(bound, key=bound.get) for bound in times[-1])
        moved = sum(one["read_sectors"] + one["written_sectors"] for one in own)
        # The time that it would take if it only moved each byte that it touches, once.
        least = sum(bound["memory"] for bound in times[-1])
        rows.append((sums[-1], f"| {name} | {len(own)} | "
                     + " | ".join(f"{value * 1e6:.2f}" for value in sums)
                     + f" | {by.most_common(1)[0][0]} | {least / sums[-1]:.2f} | "
                     f"{sum(sum(one['instructions'].values()) for one in own)} | "
                     f"{sum(one['wasted_sectors'] for one in own) / max(moved, 1):.2f} | "
                     f"{sum(one['local_sectors'] for one in own) * SECTOR >> 10} | "
                     f"{sum(one['conflicts'] for one in own)} |"))
    yield ("| kernel | launches | A100 us | H100 us | bound by | its memory's share | "
           "instructions of warps | sectors in vain | KiB local | conflicts |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    yield from (line for _, line in sorted(rows, reverse=True))


def lines_of(norm, shape, counted, facts, with_kernels):
    for name, devices in zip(counted, model(counted, facts)):
        cells, slow, kernels = [], [], []
        for gpu, launches, copy in devices:
            times = [max(bound.values()) for _, bound, _ in launches]
            cells.append(f"{sum(times) * 1e6:.2f} | {copy / sum(times):.2f}")
            if copy / sum(times) < LEAST:
                worst = max(range(len(times)), key=times.__getitem__)
                bound = launches[worst][1]
                slow.append(f"{short(launches[worst][0]['kernel'])} ({gpu.name}: "
                            f"{max(bound, key=bound.get)})")
            kernels += [f"  {gpu.name}"] + [kernel_line(*one) for one in launches]
        copy = " / ".join(f"{copy * 1e6:.2f}" for _, _, copy in devices)
        yield (f"| {norm} | {shape} | {name} | {len(devices[0][1])} | {copy} | {' | '.join(cells)} "
               f"| {', '.join(slow) or '-'} |")
        if with_kernels:
            yield from kernels


HEAD = """A model, by counts of the interpreter of PTX; no GPU was asked. Times in us.

| norm | shape | pass | kernels | copy, A100 / H100 | A100 | of the copy | H100 | of the copy | \
below 0.8 |
|---|---|---|---|---|---|---|---|---|---|"""


def norms_of(build):
    """All norms; those with groups have one, which every width allows."""
    text = subprocess.run([program_of(build), "list", "norms", "--json"], capture_output=True,
                          text=True, check=True).stdout
    return [row["norm"] + "{groups=1}" * ("groups=" in row["defaults"])
            for row in json.loads(text) if row["norm"] != "none"]


def print_step(build, args, facts):
    printed, passes = run(build, 1, "step", args.step[0], *[word for setting in args.step[1:]
                                                             for word in ("--set", setting)])
    if isinstance(printed, str):
        print(printed, file=sys.stderr)
        return 1
    print(*step_lines(passes[0], facts), sep="\n")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("norms", nargs="*")
    parser.add_argument("--shapes", default="4096x512,1024x1024,128x1000,8x400")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--step", nargs="+", metavar=("MODEL", "KEY=VALUE"))
    args = parser.parse_args()
    build = args.build.resolve()
    if not (build / "tests/ptx/libkeel_ptx.so").exists():
        print("cuda_model: skipped, for CUDA is not built (tests/ptx/check_cuda.py builds it)")
        return 77
    facts = kernels_by_ptxas(build)
    if args.step:
        return print_step(build, args, facts)
    print(HEAD, flush=True)
    cases = [(norm, shape) for norm in args.norms or norms_of(build)
             for shape in args.shapes.split(",")]
    kept = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, counted in zip(cases, pool.map(lambda case: count(build, *case), cases)):
            if isinstance(counted, str):
                print(f"| {case[0]} | {case[1]} | refused: {counted} |||||||", flush=True)
                continue
            kept.append({"norm": case[0], "shape": case[1], "passes": counted})
            print(*lines_of(*case, counted, facts, args.kernels), sep="\n", flush=True)
    if args.json:
        args.json.write_text(json.dumps(kept), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

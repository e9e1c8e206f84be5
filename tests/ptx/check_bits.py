#!/usr/bin/env python3
"""Compares the results of every op and norm: as nvcc compiled the kernels, by the interpreter of
PTX, and as the host's compiler did, on the emulator. Where no function of a mathematical library
takes part, they must have the same bits.

usage: tests/ptx/check_bits.py ROOT BUILD
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

CASE = "--test-case=cuda once: every op and norm*"
# The ops in which log or log1p of float takes part: CUDA's differ from those of the host's library
# by some units in the last place. keel compare holds these to their bounds; here a difference may
# be a share of the largest value, so that no other fault hides there.
FUNCTIONS = {"attention", "bce_with_logits", "fused_elementwise", "log", "relative_attention",
             "softplus"}
SHARE = 2**-20


def results(program, path, environment):
    """The outputs that the program's test case writes: (subject, output) -> (elements, bytes)."""
    done = subprocess.run([program, CASE, "--no-skip"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, **environment, "KEEL_BITS": str(path),
                               "KEEL_BACKEND": "cuda"})
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-3000:]}check_bits: {program} ended with {done.returncode}")
    data, at, found = path.read_bytes(), 0, {}
    while at < len(data):
        end = data.index(b"\n", at)
        subject, name, elements, size = data[at:end].decode().split("\t")
        at = end + 1 + int(size)
        found[subject, name] = int(elements), data[end + 1:at]
    return found


def difference(elements, one, other):
    """The largest difference of two tensors as a share of the largest value; 0: the same bits, but
    for which NaN it is."""
    if one == other:
        return 0
    kind = {4: "f", 8: "d"}.get(len(one) // max(elements, 1))
    if not kind:
        return float("inf")
    a, b = (struct.unpack(f"<{elements}{kind}", values) for values in (one, other))
    if any((x != x) != (y != y) for x, y in zip(a, b)):
        return float("inf")
    # Values that differ only in bits, as zeros of two signs do, differ by the least that there is.
    words = [values[i:i + 4 * (kind == "d") + 4] for values in (one, other)
             for i in range(0, len(values), 4 * (kind == "d") + 4)]
    far = [abs(x - y) or 5e-324 for x, y, v, w in zip(a, b, words, words[elements:])
           if v != w and x == x]
    largest = max((abs(x) for x in a if x == x and abs(x) != float("inf")), default=0)
    return max(far, default=0) / (largest or 1)


def main():
    build = pathlib.Path(sys.argv[2]).resolve()
    compiled, emulated = build / "tests/keel_cuda_tests", build / "tests/keel_tests"
    library = build / "tests/ptx/libkeel_ptx.so"
    if not compiled.exists() or not library.exists():
        print("check_bits: skipped, for CUDA is not built beside the emulator")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        one = results(compiled, folder / "ptx", {"LD_PRELOAD": str(library)})
        other = results(emulated, folder / "emulator", {})
    same, near = 0, set()
    bad = [f"{key}: only one program has it" for key in one.keys() ^ other.keys()]
    for key in sorted(one.keys() & other.keys()):
        far = difference(one[key][0], one[key][1], other[key][1])
        if far == 0:
            same += 1
        elif re.split("[ ,]", key[0])[1] in FUNCTIONS and far <= SHARE:
            near.add(key)
        else:
            bad.append(f"{key[0]}, {key[1]}: other bits, {far:.1e} of the largest value")
    print(*bad, sep="\n", end="\n" if bad else "")
    print(f"check_bits: {same} of {len(one)} results have the same bits, {len(near)} of functions "
          f"are near, {len(bad)} faults; near are those of",
          *sorted({re.split("[ ,]", subject)[1] for subject, _ in near}))
    return 1 if bad or not same else 0


if __name__ == "__main__":
    sys.exit(main())

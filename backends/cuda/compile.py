#!/usr/bin/env python3
"""Compiles a CUDA source, and keeps what ptxas says of its kernels for tests/cuda/check_kernels.py.

usage: backends/cuda/compile.py TEXT COMMAND...    TEXT: the file for what COMMAND says
"""
import pathlib
import re
import subprocess
import sys

FACTS = re.compile(r"ptxas info|\s+\d+ bytes stack frame")


def main():
    run = subprocess.run(sys.argv[2:], stderr=subprocess.PIPE, text=True, check=False)
    pathlib.Path(sys.argv[1]).write_text(run.stderr, encoding="utf-8")
    complaints = [line for line in run.stderr.splitlines() if not FACTS.match(line)]
    print(*complaints, sep="\n", end="\n" if complaints else "", file=sys.stderr)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the tests of plugin/judge in the Python of KEEL_PYTHON, or else python3.

usage: tests/plugin/check_judge.py ROOT [BUILD]

With a build folder that holds keel, `identify` is also tried on what keel's norms compute.
Exit code: 77 where that Python has no PyTorch. KEEL_THOROUGH=1 runs the long versions."""
import os
import pathlib
import subprocess
import sys


def main():
    tests = pathlib.Path(sys.argv[1]) / "plugin/judge/tests"
    python = os.environ.get("KEEL_PYTHON", "python3")
    try:
        found = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    except OSError:
        found = None
    if found is None or found.returncode != 0:
        print("plugin/judge: skipped: no PyTorch (KEEL_PYTHON names the Python to run)")
        return 77
    keel = pathlib.Path(sys.argv[2]).resolve() / "keel" if len(sys.argv) > 2 else None
    named = {"KEEL_PROGRAM": str(keel)} if keel and keel.is_file() else {}
    return subprocess.run([python, "-B", "-m", "unittest", "discover", "-b", "-s", str(tests)],
                          env=os.environ | named, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""tools/package --debian: what it refuses, and its steps in the roots of a release. Other programs
play debootstrap and the commands inside a root.

usage: tests/install/check_debian_roots.py ROOT"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tools"))
import debian_roots  # noqa: E402

# debootstrap OPTIONS RELEASE FOLDER
DEBOOTSTRAP = 'for folder; do :; done; mkdir -p "$folder/srv"; echo "bootstrap $*" >>"$LOG"'
# unshare OPTIONS --root ROOT COMMAND...
UNSHARE = """while [ "$1" != --root ]; do shift; done
root=$2; shift 2
echo "${root##*/}: $*" >>"$LOG"
case $1 in
*/package) mkdir -p "$root/packages"; echo deb >"$root/packages/keel_1-1~deb13_amd64.deb";;
esac"""


def play(folder, name, script):
    program = folder / name
    program.write_text(f"#!/bin/sh\nLOG={folder}/log\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def refusals(folder):
    """What is said where a program or root is missing."""
    (folder / "none").mkdir()
    call = "import debian_roots; debian_roots.expect_tools()"
    missing = "expected debootstrap in PATH, got none (apt-get install debootstrap)"
    for user, wanted in ((0, missing), (65534, "expected root")):
        code = f"import os; os.geteuid = lambda: {user}; {call}"
        done = subprocess.run([sys.executable, "-B", "-c", code], cwd=ROOT / "tools",
                              env={"PATH": str(folder / "none")}, capture_output=True, text=True)
        if done.returncode != 1 or wanted not in done.stderr:
            yield f"user {user}: exit code {done.returncode}: {done.stderr}"


def steps(folder):
    """Builds in one root, and installs and tries in the other, which stays empty until then."""
    (folder / "bin").mkdir()
    play(folder / "bin", "debootstrap", DEBOOTSTRAP)
    play(folder / "bin", "unshare", UNSHARE)
    path = os.environ["PATH"]
    debian_roots.ENVIRONMENT = {**debian_roots.ENVIRONMENT, "PATH": f"{folder}/bin:{path}"}
    os.environ["PATH"] = f"{folder}/bin:{path}"
    deb = debian_roots.pack_deb_of("trixie", ROOT, folder, True)
    if deb != folder / "keel_1-1~deb13_amd64.deb" or deb.read_text(encoding="utf-8") != "deb\n":
        yield f"the package: {deb}"
    log = (folder / "bin/log").read_text(encoding="utf-8").splitlines()
    wanted = ["bootstrap --variant=minbase --include=ca-certificates trixie",
              "build: apt-get update", "build: apt-get install",
              "build: /keel/tools/package deb --out /packages --quick",
              "empty: apt-get update", "empty: apt-get install",
              "empty: keel train mnist_mlp", "empty: keel eval /srv/run",
              "empty: keel compare mnist_mlp"]
    if len(log) != len(wanted) or not all(map(str.startswith, log, wanted)):
        yield "the steps:\n" + "\n".join(log)


def sources(folder):
    debian_roots.copy_sources(ROOT, folder / "copy")
    for name in ("meson.build", "tools/package", "docs/index.md"):
        if (folder / "copy" / name).read_bytes() != (ROOT / name).read_bytes():
            yield f"{name} was not copied"
    if not os.access(folder / "copy/tools/package", os.X_OK):
        yield "tools/package cannot be run in the copy"


def main():
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True).returncode != 0:
        print("check_debian_roots: no checkout")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        faults = [*refusals(folder), *sources(folder), *steps(folder)]
    for fault in faults:
        print(f"check_debian_roots: {fault}")
    print(f"check_debian_roots: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The steps of tools/setup before it builds: a user who may not install packages is told which are
missing, and an oneDNN of the system is taken only on oneTBB's threads. Other programs play the
machine's.

usage: tests/install/check_setup.py ROOT"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534
CONFIG = """#define DNNL_RUNTIME_OMP 2u
#define DNNL_RUNTIME_TBB 4u
#define DNNL_CPU_RUNTIME DNNL_RUNTIME_{}
"""


class Machine:
    """A copy of tools/setup, and programs that come before the machine's own."""

    def __init__(self, root, folder):
        self.folder, self.programs = folder, folder / "programs"
        for name in ("programs", "tools", "cache", "tmp"):
            (folder / name).mkdir()
        shutil.copy(root / "tools/setup", folder / "tools")
        for name in ("sudo", "nvcc", "pip", "python3", "meson"):
            self.plays(name, "exit 1")
        self.plays("sleep", "")
        self.plays("apt-get", f"echo called >>{folder}/tmp/apt")
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)

    def plays(self, name, script):
        (self.programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (self.programs / name).chmod(0o755)

    def has_onednn(self, runtime):
        header = self.folder / "oneapi/dnnl/dnnl_config.h"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(CONFIG.format(runtime), encoding="utf-8")
        (self.folder / "dnnl.pc").write_text(
            f"Name: dnnl\nDescription: d\nVersion: 3.2\nCflags: -I{self.folder}\n",
            encoding="utf-8")

    def setup(self):
        """The output of tools/setup for a user who is not root; it must fail."""
        env = {"PATH": f"{self.programs}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder),
               "KEEL_CACHE": str(self.folder / "cache"), "TMPDIR": str(self.folder / "tmp"),
               "PKG_CONFIG_PATH": str(self.folder)}
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([self.folder / "tools/setup", "--no-build"], env=env,
                              capture_output=True, text=True, **user)
        return done.returncode, done.stderr


def check(root, folder):
    machine = Machine(root, folder)
    machine.plays("dpkg-query", "case $* in *ccache*|*meson*) exit 1;; esac; echo installed")
    code, said = machine.setup()
    wanted = "apt-get install --no-install-recommends meson ccache python3-pip\n"
    if code != 1 or wanted not in said or (folder / "tmp/apt").exists():
        yield f"without two packages, root and sudo: exit code {code}\n{said}"
    machine.plays("dpkg-query", "echo installed")
    for runtime, wanted in (("OMP", "oneDNN: downloading"), ("TBB", "oneDNN: the system's")):
        machine.has_onednn(runtime)
        code, said = machine.setup()
        if wanted not in said or "packages: all installed" not in said:
            yield f"with the system's oneDNN on threads of {runtime}: {said}"


def main():
    # The user who runs setup has to reach the folder, which mkdtemp gives to one user.
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        faults = list(check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(name)))
    for fault in faults:
        print(f"check_setup: {fault}")
    print(f"check_setup: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

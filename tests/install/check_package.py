#!/usr/bin/env python3
"""Packs keel and uses it where nothing else is: the tarball in a root with only the C and C++
library, the Debian package in one with only the packages that it names, the wheels in an empty
folder of packages. A root has no shell, no compiler and no checkout.

usage: tests/install/check_package.py ROOT BUILD

Exits with 77 where BUILD lacks a part, where there is no dpkg, or no right to change the root. The
wheels are tried where the Python that KEEL_PYTHON names, or else python3, can make them."""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from check_install import NEEDED, SKIPPED, Failed, expect, run  # noqa: E402

BASE = ("libc6", "libgcc-s1", "libstdc++6")
MERGED = ("bin", "lib", "lib64", "sbin")  # links into usr/
TRAIN = ("train", "mnist_mlp", "--set", "model.hidden=32", "--set", "data.train_rows=600",
         "--set", "train.epochs=2", "--quiet")


# A root with /proc, by which the loader knows where a program lies.
INSIDE = ("unshare", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--root")


def closure(packages):
    """These packages, and all that they depend on, as far as they are installed here."""
    waiting, seen = list(packages), set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        known = subprocess.run(["dpkg-query", "-W", "-f=${Depends}, ${Pre-Depends}", package],
                               capture_output=True, text=True)
        if known.returncode == 0:
            seen.add(package)
            waiting += re.findall(r"(?:^|, )([a-z0-9][a-z0-9+.-]+)", known.stdout)
    return seen


def copy_package(package, root):
    """The libraries of an installed package, where the root has them."""
    for line in run("dpkg-query", "-L", package).splitlines():
        path = pathlib.Path(line)
        if ".so" not in path.name or path.is_dir():
            continue
        target = root / os.path.relpath(os.path.join(os.path.realpath(path.parent), path.name), "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        run("cp", "-a", path, target)


def make_root(folder, packages):
    for name in MERGED:
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "proc"):
        (folder / name).mkdir()
    for package in sorted(packages):
        copy_package(package, folder)
    return folder


def use(root, keel):
    """Trains and evaluates within the root."""
    env = {"PATH": "/usr/bin", "HOME": "/tmp"}
    run(*INSIDE, root, keel, *TRAIN, "--out", "/tmp/run", env=env)
    said = run(*INSIDE, root, keel, "eval", "/tmp/run", env=env)
    expect(float(re.search(r"error (\S+) %", said)[1]) < 80, said)
    listed = run(*INSIDE, root, keel, "list", "backends", env=env)
    expect(re.search("^onednn +ready", listed, re.MULTILINE), listed)


def expect_components(folder):
    listed = (folder / "COMPONENTS").read_text(encoding="utf-8")
    for line in listed.splitlines():
        for licence in re.findall(r"licences/[^,\s]+", line):
            expect((folder / licence).stat().st_size > 100, f"{licence} is empty")
    for name in ("oneDNN", "libeigen3-dev", "nlohmann-json3-dev"):
        expect(re.search(rf"^{name} \S+: licences/", listed, re.MULTILINE), f"{name}:\n{listed}")


def check_tarball(folder):
    (file,) = folder.glob("*.tar.xz")
    root = make_root(folder / "bare", BASE)
    run("tar", "-C", root, "-xf", file)
    (tree,) = root.glob("keel-*")
    use(root, f"/{tree.name}/bin/keel")
    expect_components(tree / "share/doc/keel")


def check_deb(folder):
    (file,) = folder.glob("*.deb")
    # Each release of a system has its own package, and says so in the name.
    expect(re.fullmatch(r"keel_[\d.]+-1~[a-z]+[\d.]*_[a-z0-9]+\.deb", file.name), file.name)
    needed = re.findall(r"([a-z0-9+.-]+) \(", run("dpkg-deb", "-f", file, "Depends"))
    for library in (r"libfmt\d+", "libtbb12"):
        expect(any(re.fullmatch(library, name) for name in needed), f"Depends: {needed}")
    root = make_root(folder / "debian", closure(needed))
    run("dpkg-deb", "-x", file, root)
    use(root, "/usr/bin/keel")
    expect_components(root / "usr/share/doc/keel")


def can_import(python, what):
    return subprocess.run([python, "-c", f"import {what}"], capture_output=True).returncode == 0


def check_wheels(python, folder):
    """Both packages, from a folder that holds nothing else, far from the checkout."""
    site = folder / "site"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps",
           "--no-index", "--target", site)
    (norms,), (judge,) = folder.glob("keel_norms-*.whl"), folder.glob("keel_judge-*-none-any.whl")
    run(*pip, norms, judge)
    env = {**os.environ, "PYTHONPATH": str(site)}
    env.pop("KEEL_NORM_LIBRARY", None)
    run(python, "-c", "import numpy, keel_norms.numpy as kn; x = numpy.eye(3);"
        "assert numpy.isfinite(kn.layer_norm(x).backward(x).dx).all();"
        f"assert kn.__file__.startswith({str(site)!r})", cwd=folder, env=env)
    if can_import(python, "torch"):
        said = run(python, site / "bin/keel-judge", "--help", cwd=folder, env=env)
        expect("keel-judge" in said, said)


def may_change_root():
    return subprocess.run([*INSIDE, "/", "true"], capture_output=True).returncode == 0


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    is_debian = pathlib.Path("/usr/bin/dpkg-deb").exists()
    if not all((build / name).exists() for name in NEEDED) or not is_debian or \
            not may_change_root():
        print("check_package: no whole build, no dpkg, or no right to change the root")
        return SKIPPED
    python = os.environ.get("KEEL_PYTHON", "python3")
    checks = {"tarball": check_tarball, "deb": check_deb}
    if can_import(python, "numpy, setuptools.command.bdist_wheel"):
        checks["wheels"] = functools.partial(check_wheels, python)
    else:
        print(f"check_package: {python} has no NumPy or no setuptools that makes wheels: the "
              "wheels were not tested")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            run(root / "tools/package", *checks, "--build", build, "--out", folder, "--quick")
            for check in checks.values():
                check(folder)
        except Failed as failed:
            print(f"check_package: {failed}")
            return 1
    print(f"check_package: {', '.join(checks)}, each used in a place of its own, 0 faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())

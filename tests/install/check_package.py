#!/usr/bin/env python3
"""Packs keel and uses it in roots that hold nothing else: the tarball where there is only the C and
C++ library, the Debian package where there are only the packages that it names. A root has no
shell, no compiler and no checkout.

usage: tests/install/check_package.py ROOT BUILD

Exits with 77 where BUILD lacks a part, where there is no dpkg, or no right to change the root."""
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
    needed = re.findall(r"([a-z0-9+.-]+) \(", run("dpkg-deb", "-f", file, "Depends"))
    for library in (r"libfmt\d+", "libtbb12"):
        expect(any(re.fullmatch(library, name) for name in needed), f"Depends: {needed}")
    root = make_root(folder / "debian", closure(needed))
    run("dpkg-deb", "-x", file, root)
    use(root, "/usr/bin/keel")
    expect_components(root / "usr/share/doc/keel")


def may_change_root():
    return subprocess.run([*INSIDE, "/", "true"], capture_output=True).returncode == 0


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    is_debian = pathlib.Path("/usr/bin/dpkg-deb").exists()
    if not all((build / name).exists() for name in NEEDED) or not is_debian or \
            not may_change_root():
        print("check_package: no whole build, no dpkg, or no right to change the root")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            for kind, check in (("tarball", check_tarball), ("deb", check_deb)):
                run(root / "tools/package", kind, "--build", build, "--out", folder,
                    "--quick")
                check(folder)
        except Failed as failed:
            print(f"check_package: {failed}")
            return 1
    print("check_package: tarball and deb, each used in a root of its own, 0 faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())

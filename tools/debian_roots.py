"""Roots of other Debian releases, made by debootstrap: one to build keel's package in, and one to
install and try it in."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NEEDED = {"debootstrap": "debootstrap", "unshare": "util-linux", "git": "git"}  # by program
INSIDE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--root")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
TRIAL = (("keel", "train", "mnist_mlp", "--set", "model.hidden=32", "--set",
          "data.train_rows=600", "--set", "train.epochs=2", "--quiet", "--out", "/srv/run"),
         ("keel", "eval", "/srv/run"), ("keel", "compare", "mnist_mlp"))


def expect_tools():
    """Ends the program unless roots can be made here."""
    if os.geteuid() != 0:
        sys.exit("package: --debian: expected root, who may make the root of a release; got user "
                 f"{os.geteuid()} (sudo tools/package ...)")
    for program, package in NEEDED.items():
        if shutil.which(program) is None:
            sys.exit(f"package: --debian: expected {program} in PATH, got none "
                     f"(apt-get install {package})")


def run(*command, **options):
    words = [str(word) for word in command]
    code = subprocess.run(words, **options).returncode
    if code != 0:
        sys.exit(f"package: {' '.join(words)}: exit code {code}")


def inside(root, *command):
    run(*INSIDE, root, *command, env=ENVIRONMENT, cwd="/")


def copy_sources(checkout, folder):
    """The files that git knows or does not ignore."""
    listed = subprocess.run(["git", "-C", checkout, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], stdout=subprocess.PIPE, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if not os.path.lexists(checkout / name):
            continue  # removed, and not yet committed
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / name, folder / name, follow_symlinks=False)


def make_root(release, folder):
    run("debootstrap", "--variant=minbase", "--include=ca-certificates", release, folder)
    return folder


def try_deb(root, deb):
    """Installs the package into an empty root, and trains, evaluates and compares there."""
    shutil.copy(deb, root / "srv/keel.deb")
    inside(root, "apt-get", "update")
    inside(root, "apt-get", "install", "--yes", "--no-install-recommends", "/srv/keel.deb")
    for command in TRIAL:
        inside(root, *command)


def pack_deb_of(release, checkout, out, quick):
    """The package of a release, built and tried in roots of it."""
    with tempfile.TemporaryDirectory(prefix="keel-", dir="/var/tmp") as name:
        empty, build = pathlib.Path(name) / "empty", pathlib.Path(name) / "build"
        make_root(release, empty)
        run("cp", "-a", empty, build)
        copy_sources(checkout, build / "keel")
        inside(build, "apt-get", "update")
        inside(build, "apt-get", "install", "--yes", "--no-install-recommends", "python3")
        inside(build, "/keel/tools/package", "deb", "--out", "/packages",
               *(["--quick"] if quick else []))
        (deb,) = (build / "packages").glob("*.deb")
        try_deb(empty, deb)
        return pathlib.Path(shutil.copy(deb, out))

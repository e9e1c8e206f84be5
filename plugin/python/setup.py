"""Builds the wheel of keel-norms in a checkout: the Python files, and beside them the library that
meson built, with the libraries that it links and a machine may lack.

KEEL_NORM_LIBRARY names the library; without it, it is that of build/, else of build-release/. The
wheel runs where the library does: on the instruction sets that it was built for, with a C library
that is not older than the builder's."""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = "libkeel_norm.so.2"
# The libraries that are compiled in or bundled, and where Debian keeps their licences.
LICENCES = {"keel": ROOT / "LICENSE",
            **{name: pathlib.Path(f"/usr/share/doc/{package}/copyright") for name, package in
               (("fmt", "libfmt-dev"), ("Highway", "libhwy-dev"), ("Eigen", "libeigen3-dev"))}}
BUNDLED = re.compile(r"\s(lib(?:fmt|hwy)\.so\S*) => (/\S+)")


def built_library():
    """The folder that meson built the library in."""
    named = os.environ.get("KEEL_NORM_LIBRARY")
    folders = [pathlib.Path(named).resolve().parent] if named else [
        ROOT / build / "plugin/c" for build in ("build", "build-release")]
    for folder in folders:
        if (folder / LIBRARY).exists():
            return folder
    raise SystemExit(f"keel-norms: no {LIBRARY} in {', '.join(map(str, folders))}: build it with "
                     "tools/setup --test, or name it by KEEL_NORM_LIBRARY")


def linked_libraries(library):
    """Paths of the libraries to bundle, by the names that the library has for them."""
    listed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return dict(BUNDLED.findall(listed))


def copy_licences(target):
    """Puts the licences beside the library; one that is missing is told."""
    target.mkdir(exist_ok=True)
    for name, path in LICENCES.items():
        if path.exists():
            shutil.copyfile(path, target / f"{name}.txt")
        else:
            print(f"keel-norms: the wheel lacks the licence of {name}: no {path}")


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        folder, target = built_library(), pathlib.Path(self.build_lib) / "keel_norms"
        files = {LIBRARY: folder / LIBRARY, **linked_libraries(folder / LIBRARY)}
        for name in ("libkeel_norm_cuda.so", "libkeel_norm_torch.so", "libkeel_norm_jax.so"):
            if (folder / name).exists():
                files[name] = folder / name
        for name, path in files.items():
            shutil.copyfile(os.path.realpath(path), target / name)
        copy_licences(target / "licences")


class AnyPython(bdist_wheel):
    """A wheel for this platform and any version of Python: the library does not know Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


def scratch_folder():
    """Where setuptools works, so that the checkout stays clean and nothing old gets in."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


SCRATCH = scratch_folder()
setup(distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython},
      options={"build": {"build_base": SCRATCH}, "egg_info": {"egg_base": SCRATCH}})

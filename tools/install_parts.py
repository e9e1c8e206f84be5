#!/usr/bin/env python3
"""The part of `meson install` besides copying targets: public headers, and libraries that the
system does not have.

usage: tools/install_parts.py LIBDIR INCLUDEDIR   (called by meson, which sets the rest)

Libraries from the checkout's .prefix (oneDNN) go into LIBDIR/keel. The paths of the checkout are
taken out of the installed files, which then find these libraries beside themselves."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import public_headers  # noqa: E402

PROGRAMS = ("bin/keel",)
RPATH = re.compile(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]")


def loaded(file):
    """The libraries that the loader finds for a built file: name and path."""
    said = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*(\S+) => (/\S+)", said, re.MULTILINE)


def keep_origin(file):
    """Leaves in a file's search path only what is relative to the file itself."""
    dynamic = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True,
                             check=True).stdout
    for old in RPATH.findall(dynamic):
        new = ":".join(part for part in old.split(":") if part.startswith("$ORIGIN"))
        content = file.read_bytes()
        before, after = (b"\0" + text.encode() + b"\0" for text in (old, new))
        if content.count(before) != 1:
            sys.exit(f"install_parts: {file}: expected one search path {old}")
        file.write_bytes(content.replace(before, after.ljust(len(before), b"\0")))


def main():
    libdir, includedir = sys.argv[1:3]
    prefix = pathlib.Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"])
    source = pathlib.Path(os.environ["MESON_SOURCE_ROOT"])
    build = pathlib.Path(os.environ["MESON_BUILD_ROOT"])
    public_headers.install(source, prefix / includedir)
    own = prefix / libdir / "keel"
    for name, path in loaded(build / "keel"):
        if pathlib.Path(path).resolve().is_relative_to((source / ".prefix").resolve()):
            own.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, own / name)
    libraries = [path for path in (prefix / libdir).glob("libkeel.so*") if not path.is_symlink()]
    for file in [*(prefix / name for name in PROGRAMS), *libraries]:
        keep_origin(file)


if __name__ == "__main__":
    main()

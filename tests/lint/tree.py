"""The files of a source tree, and the frame that the lint scripts share."""
import os
import pathlib
import subprocess
import sys

CPP = {".h", ".cpp", ".inc", ".cu", ".cuh"}
SKIPPED_FOLDERS = {".git", ".prefix", "runs", "__pycache__"}


def walk(root):
    """Paths below root, for a tree that is not a git checkout."""
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("build")]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)


def files(root):
    """The project's files as sorted paths relative to root: tracked, or new and not ignored."""
    listing = subprocess.run(["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"],
                             capture_output=True, text=True) if (root / ".git").exists() else None
    paths = listing.stdout.split("\0") if listing and listing.returncode == 0 else walk(root)
    return sorted({p for p in paths if (root / p).is_file() and not (root / p).is_symlink()})


def suffix(path):
    return pathlib.PurePath(path).suffix


def lines(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace").splitlines()


def main(check):
    """Prints what check(root) yields, "file:line: message"; exit code 1 if there is anything."""
    default = pathlib.Path(__file__).resolve().parents[2]
    problems = list(check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default))
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)

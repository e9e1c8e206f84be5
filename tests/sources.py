"""Prints "group file" for every source of the test program, so that a new test needs no line in
meson.build: its folder says with which others it is compiled. Configure again after adding a file
(meson setup --reconfigure build)."""
import collections
import pathlib

TESTS = pathlib.Path(__file__).parent

# Folders whose files are compiled together under one name; any other folder is its own group.
TOGETHER = {
    "autodiff": "engine", "core": "engine", "graph": "engine", "passes": "engine",
    "frontend/decode": "frontend_nn", "frontend/optim": "frontend_nn",
    "frontend/task": "frontend_nn", "frontend/identify": "frontend_compare",
}
# Sources that meson.build names, because they are compiled under conditions or otherwise.
APART = ("main", "backends/cuda/", "fuzz/", "install/", "plugin/", "ptx/", "ranks/")
# Tests of processes that work together, wherever the code that they test is.
RANKS = ("backends/nccl/", "bench/rank_", "frontend/data/shard_", "frontend/train/row_ledger",
         "frontend/train/micro_batches", "frontend/train/same_ranks", "frontend/train/shard_",
         "program/ranks", "runtime/shard_", "support/thread_ranks")
READS_SOURCES = "models/recipe_table_test.cpp"


def task_of(path):
    """The task whose name a test of models/ begins with, or ""."""
    lines = (TESTS.parent / "models/tasks.txt").read_text(encoding="utf-8").split("\n")
    tasks = [line.split()[0] for line in lines if line]
    return next((task for task in tasks if path.name.startswith(task + "_")), "")


def group_of(name, files_of_task):
    """The group of a source. A task has one of its own from two files on."""
    path = pathlib.PurePath(name)
    if name.startswith(RANKS):
        return "ranks"
    if name == READS_SOURCES:
        return "recipes"
    if path.parent.name == "models" and files_of_task[task_of(path)] > 1:
        return task_of(path) or "models"
    folder = path.parent.as_posix()
    return TOGETHER.get(folder, folder.replace("/", "_"))


def main():
    sources = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.cpp"))
    sources = [name for name in sources if not name.startswith(APART)]
    files_of_task = collections.Counter(
        task_of(pathlib.PurePath(name)) for name in sources if name.startswith("models/"))
    for name in sources:
        print(group_of(name, files_of_task), name)


main()

#!/usr/bin/env python3
"""Times training as several processes beside one with as many threads.

usage: bench/rank_speed.py BUILD [--ranks N] [--rounds N] [--task NAME ...]

Each round times all ways of a task one after another, in updates alone (items a second without
evaluations), so that what else the machine does hits them alike; the best of all rounds counts.
Prints each way's items a second, that as a ratio to one process of N threads and one shard, and the
least seconds of the processors that a run took, as such a ratio. Of several ranks these count the
waiting, too."""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

TASKS = {
    "mnist_cnn": ["train.max_steps=40", "data.train_rows=6000"],
    "text_classifier": ["train.max_steps=10", "data.train_rows=1500"],
    "translation": ["train.max_steps=4"],
}


def launch(ranks):
    if ranks == 1:
        return []
    return ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none",
            "--allow-run-as-root"]


def speed(build, task, ranks, threads, words):
    """Items a second of a run's updates, and seconds of the processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as temp:
        sets = [word for setting in [*TASKS[task], "train.eval_every=100000u", *words[0]]
                for word in ("--set", setting)]
        subprocess.run([*launch(ranks), str(pathlib.Path(build).resolve() / "keel"), "train", task,
                        "--quiet", "--threads", str(threads), "--out", f"{temp}/run", *sets,
                        *words[1]], check=True, capture_output=True)
        result = json.loads(pathlib.Path(temp, "run", "result.json").read_text())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return result["items_per_second"], seconds


def ways(ranks):
    """Name, ranks, threads, settings and options of each way."""
    shards = ["train.shards=8"]
    yield f"1 x {ranks} threads, 1 shard", 1, ranks, ([], [])
    yield f"1 x {ranks} threads, 8 shards", 1, ranks, (shards, [])
    yield f"{ranks} ranks x 1 thread, 8 shards, fixed", ranks, 1, (shards, [])
    yield f"{ranks} ranks x 1 thread, 8 shards, fast", ranks, 1, (shards, ["--reduce", "fast"])
    few = [f"train.shards={ranks}"]
    yield f"{ranks} ranks x 1 thread, {ranks} shards, fixed", ranks, 1, (few, [])
    yield f"{ranks} ranks x 1 thread, {ranks} shards, fast", ranks, 1, (few, ["--reduce", "fast"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", nargs="*", default=list(TASKS))
    args = parser.parse_args()
    for task in args.task:
        best, least = {}, {}
        for _ in range(args.rounds):
            for name, *way in ways(args.ranks):
                rate, seconds = speed(args.build, task, *way)
                best[name] = max(best.get(name, 0), rate)
                least[name] = min(least.get(name, seconds), seconds)
        first, first_seconds = (next(iter(values.values())) for values in (best, least))
        for name, rate in best.items():
            ratio = least[name] / first_seconds
            print(f"| {task} | {name} | {rate:.0f} | {rate / first:.2f} | {ratio:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains as several processes: the same bytes for any number of them, no matter which process ends
or stalls.

usage: tests/ranks/check_ranks.py ROOT BUILD [--filter TEXT] [--kills N]

BUILD is a build folder with keel. Says so, and does nothing, without mpirun or a keel without MPI.
--kills kills a random rank so many times at a random moment (default 2; 200 with
KEEL_THOROUGH=1). KEEL_THOROUGH=1 also trains four tasks for 200 updates with 1, 2, 3, 4 and 7
ranks of one and two threads."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

OFTEN = ["train.checkpoint_every=1", "train.log_every=1", "train.keep_checkpoints=99"]
TASKS = [
    ("mnist_mlp", ["train.shards=7", "train.max_steps=20", "data.train_rows=2000"]),
    ("mnist_cnn", ["train.shards=8", "train.max_steps=4", "data.train_rows=2000",
                   "model.norm=batchnorm"]),
    ("mnist_mlp", ["train.shards=7", "train.max_steps=20", "data.train_rows=2000",
                   "model.norm=powernorm", "train.statistics=local"]),
    ("text_classifier", ["train.shards=7", "train.max_steps=6", "train.batch=256",
                         "data.train_rows=200", "model.layers=1", "model.width=16",
                         "model.heads=2", "model.feed_forward=16"]),
]
SMALL = ["data.train_rows=400", "model.layers=1", "model.width=16"]
LONG_TASKS = [
    ("mnist_cnn", ["train.batch=16", "data.train_rows=2000", "model.norm=batchnorm"]),
    ("text_classifier", ["train.batch=256", *SMALL, "model.heads=2", "model.feed_forward=16",
                         "model.norm=powernorm"]),
    ("translation", ["train.batch=256", *SMALL, "model.heads=2", "model.feed_forward=16",
                     "model.norm=layernorm"]),
    ("handwriting", ["train.batch=8", *SMALL, "model.points=40"]),
]
# Runs that last long enough to be disturbed.
LONG = ("mnist_mlp", [*OFTEN, "train.shards=6", "train.max_steps=150", "data.train_rows=4000"])
# A short one, for many kills.
SHORT = ("mnist_mlp", [*OFTEN, "train.shards=3", "train.max_steps=30", "data.train_rows=1500",
                       "train.batch=60"])


class Wrong(Exception):
    """Bytes differ, or a run ended as it should not."""


def expect(holds, text):
    if not holds:
        raise Wrong(text)


def words_of(case, folder):
    model, settings = case
    sets = [word for setting in settings for word in ("--set", setting)]
    return [model, "--out", str(folder), *sets]


def launcher(ranks):
    """The command that starts so many ranks; 0 stands for a process without a launcher."""
    return ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none",
            "--allow-run-as-root"] if ranks else []


class Runner:
    def __init__(self, build):
        self.keel = str(pathlib.Path(build).resolve() / "keel")

    @contextlib.contextmanager
    def running(self, ranks, words, threads=1, **variables):
        """Runs keel train as so many ranks, and ends every process of it when the block ends."""
        process = subprocess.Popen([*launcher(ranks), self.keel, "train", *words, "--quiet",
                                    "--threads", str(threads)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, **variables})
        try:
            yield process
        finally:
            end(process)

    def train(self, ranks, words, threads=1):
        with self.running(ranks, words, threads) as process:
            output, _ = process.communicate(timeout=1200)
        expect(process.returncode == 0, f"{ranks} ranks end with {process.returncode}: {output}")

    def answer(self, ranks, words, given):
        """keel's output for the lines given."""
        done = subprocess.run([*launcher(ranks), self.keel, *words, "--threads", "1"], input=given,
                              capture_output=True, text=True, timeout=300)
        expect(done.returncode == 0, f"{ranks} ranks end with {done.returncode}: {done.stderr}")
        return done.stdout

    def has_mpi(self):
        """Whether two processes find each other: a wrong option is then what they end of."""
        done = subprocess.run([*launcher(2), self.keel, "train", "mnist_mlp", "--set",
                               "train.shards=1"], capture_output=True, text=True)
        return "built without MPI" not in done.stderr


def steps(folder):
    return sorted((folder / "checkpoints").glob("step-*.safetensors"))


def expect_same(a, b, names=("best.safetensors",)):
    for name in (steps(a)[-1].name, *names):
        same = (a / "checkpoints" / name).read_bytes() == (b / "checkpoints" / name).read_bytes()
        expect(same, f"{name} of {a.name} and {b.name} differ")
    tests = [json.loads((folder / "result.json").read_text())["test"] for folder in (a, b)]
    expect(tests[0] == tests[1], f"{a.name} and {b.name} measure {tests[0]} and {tests[1]}")


def ranks_of(process):
    """The process of each rank of an mpirun."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            environment = (entry / "environ").read_bytes().split(b"\0")
        except (OSError, IndexError, ValueError):
            continue
        for line in environment:
            if parent == process.pid and line.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(line.partition(b"=")[2])] = int(entry.name)
    return found


def end(process):
    """Ends a process and the ranks that it has started. mpirun ends them when it is asked to, but
    not when it is killed."""
    if process.poll() is None:
        ranks = ranks_of(process)
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
        for rank in ranks.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank, signal.SIGKILL)
        process.communicate()


def wait_for_steps(folder, count, process):
    begin = time.monotonic()
    while len(steps(folder)) < count:
        expect(process.poll() is None, "the run ended before it was disturbed")
        expect(time.monotonic() - begin < 120, "the run does not come along")
        time.sleep(0.01)


def check_same_bytes(run, temp, _):
    for number, case in enumerate(TASKS):
        one = temp / f"{number}-0"
        run.train(0, words_of(case, one))
        for ranks in (1, 2, 3, 7):
            many = temp / f"{number}-{ranks}"
            run.train(ranks, words_of(case, many))
            expect_same(one, many)


def check_long(run, temp, _):
    """200 updates of four tasks; a run that is killed goes on as another number of ranks."""
    for model, settings in LONG_TASKS:
        case = (model, [*settings, "train.shards=7", "train.max_steps=200", "train.epochs=100000",
                        "train.checkpoint_every=20"])
        one = temp / f"{model}-0"
        run.train(0, words_of(case, one))
        for ranks, threads in ((1, 2), (2, 1), (2, 2), (3, 1), (4, 2), (7, 1)):
            many = temp / f"{model}-{ranks}-{threads}"
            run.train(ranks, words_of(case, many), threads)
            expect_same(one, many)
        folder = temp / f"{model}-killed"
        with run.running(3, words_of(case, folder)) as process:
            wait_for_steps(folder, 3, process)
            os.kill(ranks_of(process)[1], signal.SIGKILL)
            process.communicate(timeout=60)
        run.train(4, ["--resume", str(folder)])
        expect_same(one, folder)
        print(f"{model}: the same bytes", flush=True)


def check_moved(run, temp, _):
    """A run goes on as 1, 3 and 2 ranks."""
    model, settings = LONG
    straight, moved = temp / "straight", temp / "moved"
    until = [f"train.max_steps={n}" for n in (20, 40, 60)]
    run.train(1, words_of((model, [*settings, until[2]]), straight))
    run.train(1, words_of((model, [*settings, until[0]]), moved))
    for ranks, limit in ((3, until[1]), (2, until[2])):
        run.train(ranks, ["--resume", str(moved), "--set", limit])
    expect_same(straight, moved, ())  # the best ones hold the limits of their parts


def check_signal(run, temp, _):
    """A signal to one rank ends all after the same step; the run goes on with another number."""
    straight, folder = temp / "straight", temp / "signalled"
    run.train(1, words_of(LONG, straight))
    with run.running(3, words_of(LONG, folder)) as process:
        wait_for_steps(folder, 5, process)
        os.kill(ranks_of(process)[2], signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    expect(process.returncode == 143, f"expected exit code 143, got {process.returncode}")
    expect("interrupted at step" in output, f"the run does not say that it goes on: {output}")
    run.train(2, ["--resume", str(folder)])
    expect_same(straight, folder)


def kill_one(run, folder, steps_before, delay):
    """Kills a random rank of three some seconds after so many checkpoints. Returns which, how long
    the others took to end, what they said and the exit code; None: the run was done before."""
    with run.running(3, words_of(SHORT, folder)) as process:
        wait_for_steps(folder, steps_before, process)
        time.sleep(delay)
        rank = random.randrange(3)
        with contextlib.suppress(KeyError, ProcessLookupError):
            os.kill(ranks_of(process)[rank], signal.SIGKILL)
            begin = time.monotonic()
            output, _ = process.communicate(timeout=60)
            return rank, time.monotonic() - begin, output, process.returncode
    return None


def check_kills(run, temp, kills):
    """A rank that is killed ends all within 20 s; the last checkpoint is whole, and leads on."""
    straight = temp / "straight"
    run.train(1, words_of(SHORT, straight))
    slowest = done = 0
    for kill in range(kills):
        folder = temp / f"killed-{kill}"
        killed = kill_one(run, folder, 1 + random.randrange(20), random.uniform(0, 0.05))
        if killed is None:
            continue
        rank, took, output, code = killed
        expect(took < 20, f"the other ranks end after {took:.0f} s")
        expect(code != 0, "a killed rank passes for a success")
        expect(re.search(rf"rank {rank}\b", output), f"rank {rank} is not named: {output}")
        run.train(kill % 3, ["--resume", str(folder)])
        expect_same(straight, folder)
        shutil.rmtree(folder)
        slowest, done = max(slowest, took), done + 1
    expect(done > 0, "no run was disturbed")
    print(f"{done} ranks killed; the others ended within {slowest:.1f} s", flush=True)


def seconds_until(process, text):
    """How long it takes until the process says so; what it said before and in that line."""
    begin, said = time.monotonic(), ""
    for line in process.stdout:
        said += line
        if text in line:
            break
    return time.monotonic() - begin, said


def check_stall(run, temp, _):
    """A rank that is stopped is named within 10 s, and all end."""
    for rank in (0, 2):
        folder = temp / f"stopped-{rank}"
        with run.running(3, words_of(LONG, folder)) as process:
            wait_for_steps(folder, 3, process)
            os.kill(ranks_of(process)[rank], signal.SIGSTOP)
            took, output = seconds_until(process, "has not answered for")
            process.communicate(timeout=60)
        expect(f"rank {rank} (" in output and "has not answered for" in output,
               f"rank {rank} is not named: {output}")
        expect(took < 10, f"rank {rank} is named after {took:.0f} s")
        expect(process.returncode != 0, "a stalled rank passes for a success")


def check_suspended(run, temp, _):
    """Ranks that all stopped together, as those of a laptop that sleeps, go on."""
    with run.running(3, words_of(LONG, temp)) as process:
        wait_for_steps(temp, 3, process)
        for rank in (ranks := ranks_of(process).values()):
            os.kill(rank, signal.SIGSTOP)
        time.sleep(11)  # longer than kStallSeconds of mpi_ranks.h
        before = len(steps(temp))
        for rank in ranks:
            os.kill(rank, signal.SIGCONT)
        wait_for_steps(temp, before + 5, process)


def check_refusals(run, temp, _):
    """An error of every rank is reported once."""
    with run.running(3, words_of(("mnist_mlp", ["train.shards=2"]), temp / "few")) as process:
        output, _ = process.communicate(timeout=60)
    expect(output.count("keel: error: train.shards: expected at least 3") == 1,
           f"expected one message about shards, got {output}")


def check_unlike(run, temp, _):
    """A rank that differs in what all must have in common is named soon, as is no keel at all."""
    model, settings = LONG
    usual = [run.keel, "train", *words_of((model, settings), temp / "usual"), "--threads", "1"]
    others = {"another --out than rank 0": [temp / "other" if word == str(temp / "usual") else word
                                            for word in usual],
              "another train.lr than rank 0": [*usual, "--set", "train.lr=0.5"],
              "another bf16 than rank 0": ["env", "KEEL_BF16=emulated", *usual],
              "another backend than rank 0": [*usual, "--backend", "reference"],
              "did not join the others": ["true"]}
    for text, other in others.items():
        begin = time.monotonic()
        done = subprocess.run(["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "1",
                               *usual, ":", "-n", "1", *map(str, other)],
                              capture_output=True, text=True, timeout=60)
        took = time.monotonic() - begin
        expect(text in done.stderr, f"expected '{text}', got {done.stderr}")
        expect(done.returncode in (3, 4), f"{text}: ends with {done.returncode}")
        expect(took < 20, f"{text}: after {took:.0f} s")
        expect(not (temp / "usual").exists(), f"{text}: the run began")


def check_answers(run, temp, _):
    """`keel predict` and `keel eval` give what one process gives, to the byte."""
    trained = temp / "answers"
    small = ["model.layers=1", "model.width=16", "model.heads=2", "model.feed_forward=16"]
    run.train(0, words_of(("translation", ["train.max_steps=6", "data.train_rows=500", *small]),
                          trained))
    lines = "".join(f"s{n % 37} s{n % 11} s{n % 5}\n" for n in range(1300))  # three portions
    asked = {"n-best": (["predict", str(trained), "--n-best", "2"], lines),
             "JSON": (["predict", str(trained), "--json"], lines),
             "one line": (["predict", str(trained), "--text", "s1 s2"], ""),
             "no line": (["predict", str(trained)], "")}
    for name, (words, given) in asked.items():
        one = run.answer(0, words, given)
        expect(name == "no line" or one.count("\n") > 0, f"{name}: nothing is answered")
        for ranks in (1, 2, 4):
            expect(run.answer(ranks, words, given) == one, f"{name}: {ranks} ranks say otherwise")
    numbers = []
    for ranks in (0, 1, 3, 7):
        result = json.loads(run.answer(ranks, ["eval", str(trained), "--json"], ""))
        result.pop("answers_per_second")
        numbers.append(result)
    expect("bleu" in str(numbers[0]), f"no search: {numbers[0]}")
    expect(all(n == numbers[0] for n in numbers), f"evaluations differ: {numbers}")


def check_bench(run, *_):
    """`keel bench ranks` starts every way, and models more hosts from what it measured."""
    done = subprocess.run([run.keel, "bench", "ranks", "mnist_mlp", "--set", "data.train_rows=2000",
                           "--steps", "2", "--rounds", "1", "--shards", "3", "--json"],
                          capture_output=True, text=True, timeout=300)
    expect(done.returncode == 0, f"bench ranks ends with {done.returncode}: {done.stderr}")
    result = json.loads(done.stdout)
    expect([way["ranks"] for way in result["ways"]] == [1, 1, 2, 2, 2, 2], "other ways were run")
    expect(all(way["step_seconds"] > 0 for way in result["ways"]), "a step took no time")
    expect(result["ways"][2]["summed_bytes"] == result["ways"][3]["summed_bytes"] > 1e6,
           "fixed and fast sum other bytes")
    expect([row["hosts"] for row in result["hosts"]] == [8, 64, 512], "other hosts are modelled")


def check_nccl(run, temp, _):
    """Where there is no NCCL, keel says so by name, once for all ranks."""
    words = [*words_of(("mnist_mlp", ["train.shards=2"]), temp / "nccl"), "--carrier", "nccl"]
    with run.running(2, words, KEEL_NCCL=str(temp / "libnccl.so")) as process:
        output, _ = process.communicate(timeout=60)
    expect(process.returncode == 7, f"expected exit code 7, got {process.returncode}: {output}")
    expect(output.count("keel: error: NCCL") == 1, f"expected one message, got {output}")


CHECKS = [check_refusals, check_unlike, check_nccl, check_bench, check_answers,
          check_same_bytes, check_moved, check_signal, check_kills, check_stall, check_suspended]
if os.environ.get("KEEL_THOROUGH") == "1":
    CHECKS.append(check_long)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root")
    parser.add_argument("build")
    parser.add_argument("--filter", default="")
    parser.add_argument("--kills", type=int,
                        default=200 if os.environ.get("KEEL_THOROUGH") == "1" else 2)
    args = parser.parse_args()
    run = Runner(args.build)
    if shutil.which("mpirun") is None or not run.has_mpi():
        print("skipped: ranks: there is no mpirun, or keel is built without MPI")
        return 0
    wrong = 0
    for check in [c for c in CHECKS if args.filter in c.__name__]:
        with tempfile.TemporaryDirectory() as temp:
            try:
                check(run, pathlib.Path(temp), args.kills)
                print(f"ok: {check.__name__}", flush=True)
            except (Wrong, subprocess.TimeoutExpired) as error:
                print(f"wrong: {check.__name__}: {error}", flush=True)
                wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())

"""Runs the properties in a process of its own, so that a norm may crash or hang.

The child writes a line of JSON for each thing that it begins or has seen. Where it ends, or is
silent for too long, the present case gets a verdict in words, and another child goes on. Silence
is measured in processor time, so that a busy machine makes no norm hang."""
import contextlib
import json
import os
import select
import signal
import time
import traceback

from keel_judge.acid_test.outcome import FAIL, NOT_TRIED, Outcome, Skip
from keel_judge.acid_test.properties import PROPERTIES

MOST_WAITS = 2  # for a norm that hangs
WALL = 10  # times the timeout: the wait for a norm that sleeps, which takes no processor time


def run_property(target, name, only, send):
    """All cases of a property in this process. `target` gives the Trial."""
    send({"begin": name})
    began = time.perf_counter()
    try:
        trial = target()
        made = PROPERTIES[name]()
        made.check(trial)
        cases = made.cases(trial)
    except Skip as reason:
        send({"skip": name, "words": str(reason)})
        return
    if not cases:
        send({"skip": name, "words": "no shape that the norm takes tells"})
        return
    calls = trial.calls
    for number, case in enumerate(cases):
        if only is not None and number != only:
            continue
        send({"case": number, "text": case.text()})
        for outcome in outcomes_of(made, trial, case, number):
            outcome.case, outcome.number = case.text(), number
            send({"saw": name, **outcome.as_dict()})
    send({"end": name, "calls": trial.calls - calls, "seconds": time.perf_counter() - began})


def outcomes_of(made, trial, case, number):
    """The outcomes of a case; an exception of the callable is a verdict, too."""
    try:
        return made.run(trial, case, number)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the callable as well
        trial.check_process()
        told = f"{error}" if type(error).__name__ in ("Broken", "NoGradient") else \
            f"raises {type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}" \
            f"{raised_in(error)}"
        return [Outcome(FAIL, told, float("inf"))]


def raised_in(error):
    frames = traceback.extract_tb(error.__traceback__)
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    foreign = [f for f in frames if not f.filename.startswith(own)]
    return f" ({os.path.basename(foreign[-1].filename)}:{foreign[-1].lineno})" if foreign else ""


class Child:
    """A forked process that runs some properties and tells what it sees through a pipe."""

    def __init__(self, target, names, only, timeout):
        self.end, inner = os.pipe()
        self.timeout = timeout
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.end)
            with contextlib.suppress(BaseException):
                self.work(target, names, (only, inner))
            os._exit(0)
        os.close(inner)
        self.rest = b""

    def work(self, target, names, how):
        only, inner = how
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the norm prints
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        self.wait_again()
        own = os.getpid()

        def send(message):
            if os.getpid() != own:
                os._exit(88)
            self.wait_again()
            os.write(inner, json.dumps(message).encode() + b"\n")
        try:
            target()
        except BaseException as error:  # whatever the import of a program raises
            send({"bad": f"{type(error).__name__}: {error}{raised_in(error)}"})
            return
        for name in names:
            try:
                run_property(target, name, only, send)
            except BaseException as error:
                send({"stopped": name, "words": f"raises {type(error).__name__}: "
                      f"{str(error).partition(chr(10))[0][:200]}{raised_in(error)}"})

    def wait_again(self):
        """SIGPROF ends this process where it then works for longer than the timeout."""
        signal.setitimer(signal.ITIMER_PROF, self.timeout)

    def messages(self):
        """Yields what the child says; ends with {"died": words} where it does not end well."""
        while True:
            *lines, self.rest = self.rest.split(b"\n")
            for line in lines:
                yield json.loads(line)
            ready, _, _ = select.select([self.end], [], [], WALL * self.timeout)
            if not ready:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                yield {"died": f"hangs: no result after {WALL * self.timeout:g} s"}
                return
            piece = os.read(self.end, 65536)
            if not piece:
                yield {"died": self.ended()}
                return
            self.rest += piece

    def ended(self):
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGPROF:
                return f"hangs: no result after {self.timeout:g} s of processor time"
            names = {s.value: s.name for s in signal.Signals}
            return f"crashes: the process ends by {names.get(number, number)}"
        code = os.WEXITSTATUS(status)
        return f"ends the process with exit code {code}"

    def close(self):
        os.close(self.end)


def run_in_child(target, names, verdicts, options):
    """Fills `verdicts`; whatever the norm does, this process goes on."""
    names, waits = list(names), 0
    while names and waits < MOST_WAITS:
        child = Child(target, names, options.get("only_case"), options["timeout"])
        now, case = names[0], (-1, "")
        for message in child.messages():
            if "bad" in message:
                child.close()
                raise ValueError(message["bad"])
            if "begin" in message:
                now, case = message["begin"], (-1, "before the first case")
            elif "text" in message:
                case = (message["case"], message["text"])
            elif "end" in message or "skip" in message:
                names.remove(now)
                note(verdicts[now], message)
                now = names[0] if names else ""
            elif "died" in message:
                if not now:
                    break
                verdicts[now].take(Outcome(FAIL, message["died"], float("inf"), case[1], case[0]))
                names.remove(now)
                waits += message["died"].startswith("hangs")
            elif "stopped" in message:
                verdicts[now].take(Outcome(FAIL, message["words"], float("inf"), case[1], case[0]))
                names.remove(now)
                now = names[0] if names else ""
            else:
                note(verdicts[now], message)
        child.close()
    for name in names:
        verdicts[name].words = "the norm hangs"


def run_here(target, names, verdicts, options):
    """In this process: for callables that are trusted, and where many are tried."""
    for name in names:
        run_property(target, name, options.get("only_case"),
                     lambda message, name=name: note(verdicts[name], message))


def note(verdict, message):
    if "saw" in message:
        verdict.take(Outcome(*(message[k] for k in ("level", "words", "share", "case", "number"))))
    elif "skip" in message:
        verdict.level, verdict.words = NOT_TRIED, message["words"]
    elif "end" in message:
        verdict.calls, verdict.seconds = message["calls"], message["seconds"]

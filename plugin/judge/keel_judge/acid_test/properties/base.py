"""Base class and helpers of the properties."""
from keel_judge.acid_test.outcome import FAIL, LIMIT, Outcome, Skip
from keel_judge.acid_test.samples import shapes_of


class Property:
    name = title = ""
    needs_torch = False  # records gradients itself

    def cases(self, trial):
        raise NotImplementedError

    def run(self, trial, case, number):
        raise NotImplementedError

    def check(self, trial):
        """Raises Skip where the property makes no sense."""
        if self.needs_torch and not trial.adapter.is_torch:
            raise Skip("only for norms of PyTorch")

    def arrays(self, trial, case, number):
        return trial.arrays(case, self.name, number)


def thinned(trial, cases, count):
    """In a quick test `count` cases spread over all. Slow norms leave out those of many rows."""
    cases = [c for c in cases if shape_of(c)[0] <= trial.most_rows]
    if not trial.is_quick or len(cases) <= count:
        return cases
    return [cases[i * len(cases) // count] for i in range(count)]


def shape_of(case):
    return getattr(case, "shape", case)


def usual_shape(trial):
    """A shape with several rows, groups and channels."""
    shapes = shapes_of(trial)
    return shapes[0]


def refusal(error, what):
    """A clear error is a limit, not a fault."""
    return Outcome(LIMIT, f"refuses {what}: {type(error).__name__}: {first_line(error)}")


def first_line(error):
    return str(error).strip().partition("\n")[0][:160]


def failed(words, share=float("inf")):
    return Outcome(FAIL, words, share)

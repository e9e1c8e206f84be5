"""The outcome of a case, and the verdict of a property."""
from dataclasses import asdict, dataclass, field

PASS, LIMIT, FAIL, NOT_TRIED = "pass", "limit", "FAIL", "not tried"
ORDER = (NOT_TRIED, PASS, LIMIT, FAIL)


class Skip(Exception):
    """Why a property is not tried."""


@dataclass
class Outcome:
    """One observation: its level, and words that say what was seen. `share` is the error as a
    share of its bound."""

    level: str
    words: str = ""
    share: float = 0.0
    case: str = ""  # its text
    number: int = -1

    def as_dict(self):
        return asdict(self)


@dataclass
class Verdict:
    """A property: its worst outcome, and how to see it again."""

    name: str
    title: str
    level: str = NOT_TRIED
    words: str = ""
    case: str = ""
    number: int = -1
    share: float = 0.0  # the largest of all cases
    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    command: str = ""
    also: list = field(default_factory=list)  # other words of the same level

    def take(self, outcome):
        self.share = max(self.share, outcome.share)
        self.failed += outcome.level == FAIL
        if ORDER.index(outcome.level) > ORDER.index(self.level):
            self.also = []
        elif outcome.level != self.level or (outcome.share <= self._worst or not outcome.words):
            if outcome.level == self.level and outcome.words and \
                    outcome.words not in (self.words, *self.also):
                self.also.append(outcome.words)
            return
        elif self.words and self.words != outcome.words:
            self.also.append(self.words)
        self.level, self.words, self._worst = outcome.level, outcome.words, outcome.share
        self.case, self.number = outcome.case, outcome.number

    def __post_init__(self):
        self._worst = -1.0

    def as_dict(self):
        return asdict(self)

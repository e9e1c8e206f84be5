"""The callable under test: found by its name, and bound to an adapter and a claim."""
import importlib
import math
import os
import sys

from keel_judge.acid_test.adapters import adapter_named, library_of
from keel_judge.acid_test.binding import binding_of, name_of
from keel_judge.acid_test.claim import KINDS, Claim, claim_with
from keel_judge.formulas import norm_named

CLAIM_OPTIONS = ("eps", "eps_place", "unbiased", "offset", "groups", "cast", "momentum")


def load(name):
    """The object that MODULE:NAME or a dotted name stands for; a path of an ONNX model is itself.
    """
    if name.endswith(".onnx"):
        return name
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module, _, attributes = name.partition(":")
    if not attributes:
        return load_dotted(name)
    found = importlib.import_module(module)
    for part in attributes.split("."):
        found = getattr(found, part)
    return found


def load_dotted(name):
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if error.name and ".".join(parts[:count]).startswith(error.name):
                continue
            raise
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(f"no module of {name!r}: expected MODULE:NAME")


def claimed_norm(function, name=""):
    """The norm that a name says, or ValueError."""
    words = name or (type(function).__name__ if not hasattr(function, "__name__")
                     else function.__name__)
    norm = norm_named(words)
    if norm in KINDS:
        return norm
    raise ValueError(f"{words}: its name says no norm: give --as, one of {', '.join(KINDS)}")


def compiled_call(text, function):
    """The function of `--call`: an expression of f, x, gain and bias, with the module's names."""
    space = dict(getattr(sys.modules.get(getattr(function, "__module__", "")), "__dict__", {}))
    return eval(f"lambda f, x, gain, bias: {text}", space)  # the user's own program


class Target:
    """Makes the Trial when it is first asked for, in the process that runs it."""

    def __init__(self, function, options):
        self.given, self.options, self.trial = function, dict(options), None

    def name(self):
        return self.given if isinstance(self.given, str) else name_of(self.given)

    def claim(self, function):
        named = self.options.get("as_") or claimed_norm(
            function, self.given.rpartition(".")[2] if isinstance(self.given, str) else "")
        chosen = {k: self.options[k] for k in CLAIM_OPTIONS if self.options.get(k) is not None}
        return Claim(named, **chosen)

    def __call__(self):
        if self.trial is None:
            self.trial = self.make()
        return self.trial

    def make(self):
        from keel_judge.acid_test.trial import Trial
        function = load(self.given) if isinstance(self.given, str) else self.given
        claim = self.claim(function)
        call = self.options.get("call")
        call = compiled_call(call, function) if isinstance(call, str) else call
        binding = binding_of(function, claim, call)
        adapter = self.adapter(function, binding)
        for option in ("width", "shape"):
            if self.options.get(option):
                setattr(binding, option, self.options[option])
        for role in ("gain", "bias"):
            if self.options.get(role) is not None:
                setattr(binding, f"has_{role}", self.options[role])
        trial = Trial(adapter, claim, self.options)
        self.settle(trial)
        return trial

    def adapter(self, function, binding):
        chosen = self.options.get("adapter") or library_of(function)
        kind = adapter_named(chosen) if isinstance(chosen, str) else chosen
        backward = self.options.get("backward") or "autograd"
        if isinstance(backward, str) and backward not in ("autograd", "none"):
            backward = load(backward)
        return kind(binding, backward)

    def settle(self, trial):
        """The eps and the momentum that are not claimed: as the callable says, or as its numbers
        show."""
        changes, binding = {}, trial.binding
        if trial.claim.eps is None:
            changes["eps"] = binding.default_eps if binding.default_eps is not None \
                else self.shown_eps(trial)
        if self.options.get("momentum") is None and binding.default_momentum:
            changes["momentum"] = binding.default_momentum
        if any(v is not None and not (isinstance(v, float) and math.isnan(v))
               for v in changes.values()):
            changes = {k: v for k, v in changes.items() if v is not None}
            trial.claim = claim_with(trial.claim, **changes)
            if not getattr(binding, "is_class", False):
                binding.claim = trial.claim if self.options.get("eps") else binding.claim

    def shown_eps(self, trial):
        from keel_judge.acid_test.properties.formula import eps_found
        takes_eps = any(p.role == "eps" for p in trial.binding.parameters or ())
        if takes_eps:
            return None  # it is given the usual one
        try:
            return eps_found(trial)
        except BaseException:  # also SystemExit: the properties will say what is wrong
            return None

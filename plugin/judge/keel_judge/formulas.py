"""Which norm each module that looks like one computes: right ops may make a wrong formula.

A copy of the module runs on numbers that tell eps, its place and the divisor of the variance, which
the program's own numbers seldom do. Modules of one class with equal settings count as one."""
import copy
import math
import re
import weakref
from dataclasses import asdict, dataclass, field

import torch
from torch.utils._pytree import tree_map_only

from keel_judge.norms import identify

MOST, LARGEST = 8_000, 100_000  # elements of the numbers that a norm is tried on
GAINS, BIASES = ("weight", "gain", "gamma", "scale", "g", "w"), ("bias", "beta", "shift", "b")
STATES = ("running_mean", "running_var", "running_std", "psi2", "nu")
# The norm that a name claims, longer names first, and norms that are the same or a case of it.
CLAIMS = (("layer_?norm", "layernorm"), ("rms_?norm", "rmsnorm"), ("batch_?norm", "batchnorm"),
          ("group_?norm", "groupnorm"), ("instance_?norm", "instancenorm"),
          ("scale_?norm", "scalenorm"), ("ada_?norm", "adanorm"), ("detach_?norm", "detachnorm"),
          ("power_?norm", "powernorm"), (r"(?<![a-z])ln(?![a-z])", "layernorm"),
          (r"(?<![a-z])bn(?![a-z])", "batchnorm"), (r"(?<![a-z])gn(?![a-z])", "groupnorm"))
LOOKS = re.compile(r"norm(?!al)", re.I)
SAME = {"layernorm": {"layernorm", "layernorm_simple"},
        "detachnorm": {"detachnorm", "layernorm", "layernorm_simple"},
        "groupnorm": {"groupnorm", "layernorm", "layernorm_simple", "instancenorm"},
        "instancenorm": {"instancenorm", "groupnorm", "layernorm_simple"},
        "rmsnorm": {"rmsnorm", "layerscaling"}, "powernorm": {"powernorm", "pn_v"},
        "batchnorm": {"batchnorm", "recurrentbatchnorm"}}


@dataclass
class NormModule:
    """Modules of a class that looks like a norm, and what they compute."""

    kind: str  # the class
    modules: list
    claims: str  # keel's name of the norm that its name says, or ""
    norm: str = ""  # the one that it computes, or "" where none is known that does
    options: dict = field(default_factory=dict)
    differs: str = ""  # from what the name says, or ""
    remark: str = ""

    def text(self):
        shown = ", ".join(m or "the model itself" for m in self.modules[:3])
        more = f" and {len(self.modules) - 3} more" if len(self.modules) > 3 else ""
        what = (self.norm + words_of(self.options)) if self.norm else "no norm that is known"
        parts = [what] + [part for part in (self.remark, self.differs) if part]
        return f"{self.kind}: {'; '.join(parts)} (in {shown}{more})"

    def as_dict(self):
        return asdict(self)


def words_of(options):
    """" with eps outside the root, ..."; nothing where all is as usual."""
    parts = []
    if options.get("eps_place") == "outside":
        parts.append("eps outside the root")
    if options.get("unbiased"):
        parts.append("its variance over n - 1")
    if options.get("offset"):
        parts.append("1 added to its gain")
    if "groups" in options:
        parts.append(f"{options['groups']} group{'' if options['groups'] == 1 else 's'}")
    return f" with {', '.join(parts)}" if parts else ""


def norm_named(text):
    """The norm that a name says, or ""."""
    return next((norm for pattern, norm in CLAIMS if re.search(pattern, text, re.I)), "")


def claim_of(module, name):
    """The norm that the name of the class says, or else that of the module."""
    return norm_named(type(module).__name__) or norm_named(name.rpartition(".")[2])


def looks_like(module, name):
    last = name.rpartition(".")[2]
    return bool(claim_of(module, name) or LOOKS.search(type(module).__name__)
                or LOOKS.search(last))


def key_of(module, x):
    """A key that decides which formula a module computes: class and settings, not values."""
    settings = tuple(sorted((k, v) for k, v in vars(module).items()
                            if isinstance(v, (bool, int, float, str, tuple))))
    sizes = tuple((n, tuple(p.shape)) for n, p in module.named_parameters())
    return type(module), repr(settings), sizes, x.dim(), x.shape[1:], x.dtype


@dataclass
class Seen:
    """A module and what it was given, without the numbers of its first input."""

    module: torch.nn.Module
    names: list
    is_named: bool
    shape: tuple
    dtype: torch.dtype
    device: torch.device
    others: tuple  # inputs


class Formulas:
    """Sees every call of a module, and keeps one of each kind that may be a norm."""

    def __init__(self):
        self.known, self.seen = weakref.WeakSet(), {}

    def saw(self, name, module, inputs, output):
        """A module whose name or class looks like a norm; or one in the place of a norm: it is
        not PyTorch's, has no modules of its own, and its result has the shape of its input."""
        if module in self.known:
            return
        self.known.add(module)
        is_named = looks_like(module, name)
        if not (is_named or is_own(module)) or next(module.children(), None) is not None:
            return
        if len(inputs) == 0 or not all(is_plain(t) for t in (inputs[0], output)) \
                or inputs[0].shape != output.shape or inputs[0].numel() == 0:
            return
        x, others = inputs[0], tree_map_only(torch.Tensor, torch.Tensor.detach, inputs[1:])
        seen = self.seen.setdefault(key_of(module, x), Seen(
            module, [], is_named, tuple(x.shape), x.dtype, x.device, others))
        seen.names.append(name)

    def found(self, is_in_time):
        """NormModules, in the order in which they ran, and how many were left out for time."""
        result, left = [], 0
        for seen in self.seen.values():
            if not is_in_time():
                left += 1
                continue
            norm = self.look(seen)
            if seen.is_named or norm.norm not in ("", "none", "dynamic tanh"):
                result.append(norm)
        return result, left

    def look(self, seen):
        module = seen.module
        norm = NormModule(type(module).__name__, seen.names, claim_of(module, seen.names[0]))
        try:
            answer = answer_of(seen)
        except Exception as error:  # the program's own code runs in it
            norm.remark = f"could not be tried: {type(error).__name__}"
            return norm
        if answer is None:
            norm.remark = "its shapes are not known"
        elif answer.is_known:
            norm.norm, norm.options = answer.best.norm, dict(answer.best.options)
            norm.differs = difference(norm, answer, getattr(module, "eps", None))
        else:
            norm.remark = f"the nearest is {answer.best.text()}, y off by " \
                f"{answer.best.distance:.3g} bounds"
            norm.differs = f"its name says {norm.claims}" if norm.claims else ""
        return norm


def is_own(module):
    return not type(module).__module__.startswith("torch.")


def is_plain(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point() and \
        value.layout == torch.strided and value.device.type != "meta"


def difference(norm, answer, eps):
    """How a norm differs from the one that its name says, or ""."""
    parts = []
    if norm.claims and not SAME.get(norm.claims, {norm.claims}) & set(answer.names):
        parts.append(f"its name says {norm.claims}")
    is_usual = any(c.options.get("eps_place") != "outside" and not c.options.get("unbiased")
                   for c in answer.matches)
    if norm.claims and not is_usual:
        usual = ["eps inside the root"] if norm.options.get("eps_place") == "outside" else []
        usual += ["its variance over n"] if norm.options.get("unbiased") else []
        parts.append(f"its name says {norm.claims} with {', '.join(usual)}")
    told = {c.options["eps"] for c in answer.matches if "eps" in c.options}
    if isinstance(eps, float) and told and not any(math.isclose(eps, e) for e in told):
        parts.append(f"its eps says {eps:g}, it computes with {min(told):g}")
    return "; ".join(parts)


def answer_of(seen):
    """The answer of `identify` for a copy of the module on numbers made for it; None for shapes
    that it does not take."""
    own = copy.deepcopy(seen.module)
    own._forward_hooks.clear()  # the program's, which may count or print
    gain, bias = parameter(own, GAINS, 0), parameter(own, BIASES, 1)
    given = {k: p for k, p in (("gain", gain), ("bias", bias)) if p is not None}
    before = {name: state.detach().clone() for name in STATES if not own.training
              and (state := getattr(own, name, None)) is not None}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for name, p in given.items():  # equal gains would not tell an offset
            p.copy_(torch.rand_like(p) + 0.5 if name == "gain" else torch.randn_like(p))
        sizes = {p.numel() for p in given.values()} or {*seen.shape[1:2], seen.shape[-1]}
        x, y = run(own, seen, seen.dtype if gain is None else gain.dtype, sizes)
    first = None
    for shape, are_flat in views(x, own, given.values()):
        parameters = {k: p.flatten() if are_flat else p for k, p in given.items()}
        answer = identify(x=x.reshape(shape), y=y.reshape(shape), before=before, **parameters)
        if answer.is_known:
            return answer
        first = first or answer
    return first


def run(module, seen, dtype, sizes):
    """x and y: of the first of some shapes that the module takes."""
    for shape in shapes_for(seen, sizes):
        if math.prod(shape) > LARGEST:
            continue
        x = numbers_like(shape, dtype).to(seen.device)
        try:
            return x, module(x, *seen.others)
        except Exception:  # it was made for the shape that the program gave
            if shape == seen.shape:
                raise
    raise ValueError("too large")


def shapes_for(seen, sizes):
    """As many samples as tell most, of few places besides the axes that parameters have; of all
    places; and what the program gave. A norm of large numbers takes long."""
    inner = seen.shape[1:]
    if not seen.others and inner:
        for rest in (tuple(n if n in sizes else min(n, 4) for n in inner), inner):
            yield (max(4, min(64, MOST // math.prod(rest))), *rest)
    yield seen.shape


def numbers_like(shape, dtype):
    """Numbers whose deviations go from 1e-6 to 10 by sample, and from 0.01 to 1 by feature."""
    draw = torch.Generator().manual_seed(0)
    value = torch.randn(shape, generator=draw, dtype=torch.float64) + 0.5
    value *= ladder(shape[0], -6, 1).reshape(-1, *[1] * (len(shape) - 1))
    if len(shape) > 1:
        axis = 1 if len(shape) == 4 else len(shape) - 1
        steps = ladder(shape[axis], -2, 0)[torch.randperm(shape[axis], generator=draw)]
        value *= steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return value.to(dtype)


def ladder(count, low, high):
    return 10 ** torch.linspace(low, high, count, dtype=torch.float64)


def parameter(module, names, place):
    """The gain or the bias: by its name, or as the first or second vector that it learns."""
    for name in names:
        value = getattr(module, name, None)
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value
    known = {n for n, _ in module.named_parameters()} & {*GAINS, *BIASES}
    vectors = [p for p in module.parameters() if p.numel() > 0]
    return vectors[place] if not known and place < len(vectors) else None


def views(x, module, parameters):
    """Shapes under which x may be a norm's input, and whether parameters are flat there."""
    shape, sizes = tuple(x.shape), {p.numel() for p in parameters}
    normalized = getattr(module, "normalized_shape", None)
    if isinstance(normalized, (tuple, list)):
        yield (-1, math.prod(normalized)), True
        return
    if len(shape) == 1:
        yield (1, *shape), True
    if 2 <= len(shape) < 4 or (len(shape) == 4 and sizes <= {1, shape[1], x[0].numel()}):
        yield shape, False
    if len(shape) > 4 and sizes <= {shape[1]}:
        yield (*shape[:2], math.prod(shape[2:-1]), shape[-1]), True
    if len(shape) > 3 and sizes <= {1, shape[-1]}:
        yield (-1, shape[-1]), True

"""Ops on lists of tensors (foreach): each tensor is judged by the rule of the op on one."""
import torch

from keel_judge.call import Call, Refused

NAMES = {"scalar": "other", "scalars": "other", "tensors1": "self", "tensors2": "other",
         "weights": "weight"}
# The name of a scalar in the op on one tensor.
SCALARS = {"addcmul": "value", "addcdiv": "value", "lerp": "weight", "pow": "exponent"}
SINGLE = {"norm": "linalg_vector_norm", "maximum": "maximum", "minimum": "minimum"}
OPS = """
    add sub mul div addcmul addcdiv lerp sqrt rsqrt reciprocal neg abs exp log pow sigmoid
    norm clamp_min clamp_max maximum minimum copy zero sign
    """.split()


class Element(Call):
    """One tensor's part of a call on lists."""

    def __init__(self, call, base, number, result):
        self.given = {one_name(base, name): one_of(value, number)
                      for name, value in call.given.items()}
        self.wide = {one_name(base, name): one_of(value, number)
                     for name, value in call.wide.items()}
        self.name, self.results, self.base = base, [result], base
        self.func = None

    def run_on(self, values):
        return [compute(self.base, values)]


def one_name(base, name):
    if name in ("scalar", "scalars"):
        return SCALARS.get(base, "other")
    return {"tensor1": "tensor1", "tensor2": "tensor2", "tensors1": "end",
            "weights": "weight", "exponent": "exponent"}.get(name, name)


def one_of(value, number):
    if isinstance(value, (list, tuple)):
        return value[number]
    if isinstance(value, torch.Tensor) and value.dim() == 1:
        return value[number]
    return value


def compute(base, values):
    """The op on one tensor, in float64."""
    x = values["self"]
    if base in ("addcmul", "addcdiv"):
        return getattr(torch, base)(x, values["tensor1"], values["tensor2"],
                                    value=float(values.get("value", 1)))
    if base == "lerp":
        return torch.lerp(x, values["end"], values["weight"])
    if base in ("add", "sub"):
        return getattr(torch, base)(x, values["other"], alpha=values.get("alpha") or 1)
    if base == "pow":
        return torch.pow(x, values["exponent"])
    if base == "norm":
        return torch.linalg.vector_norm(x, values.get("ord", 2))
    if base == "copy":
        return values["src"].clone()
    if base in ("clamp_min", "clamp_max", "maximum", "minimum"):
        bound = torch.as_tensor(values["other"], dtype=torch.float64)
        smallest = base in ("clamp_min", "maximum")
        return torch.maximum(x, bound) if smallest else torch.minimum(x, bound)
    if base == "zero":
        return torch.zeros_like(x)
    return getattr(torch, base)(x, values["other"]) if values.get("other") is not None \
        else getattr(torch, base)(x)


def each(base):
    def rule(call):
        from keel_judge import rules  # the table is complete when ops run
        of_one = rules.RULES.get(SINGLE.get(base, base))
        if of_one is None:
            raise Refused("no rule")
        return [of_one(Element(call, base, number, result))[0]
                for number, result in enumerate(call.results)]
    return rule


RULES = {f"_foreach_{base}": each(base) for base in OPS}

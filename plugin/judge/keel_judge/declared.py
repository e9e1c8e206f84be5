"""Ops of other libraries with a formula that is declared: they are judged like PyTorch's own."""
import torch

from keel_judge.acid_test.binding import ROLES
from keel_judge.acid_test.claim import Claim, Reference
from keel_judge.rules import DECLARED

GRADIENTS = ("dx", "dgain", "dbias")


def declare(op, as_, backward=None, returns=None, **options):
    """Declares that a custom op computes a norm, so that `judge` holds it to the formula.

        keel_judge.declare("mylib::rms_norm", as_="rmsnorm", eps=1e-6,
                           backward="mylib::rms_norm_backward")

    Arguments are found by their names, as `keel-judge norm` finds them; `eps` is that of the op's
    argument where it has one. The first result of `op` is y. Those of `backward` are dx and the
    gradients of gain and bias, or what `returns` names: a tuple of "dx", "dgain", "dbias" and None.
    Options are those of the claim: eps, eps_place, unbiased, offset, groups."""
    claim = Claim(as_, **options)
    DECLARED[schema_name(op)] = lambda call: of_forward(call, claim)
    if backward is not None:
        DECLARED[schema_name(backward)] = lambda call: of_backward(call, claim, returns)


def schema_name(op):
    """The name with its namespace, of an op, of what `torch.library.custom_op` gives, or itself."""
    if isinstance(op, str):
        if op.count("::") != 1:
            raise ValueError(f"{op!r}: expected NAMESPACE::NAME")
        return op
    op = getattr(op, "_opoverload", op)
    schema = getattr(getattr(op, "default", op), "_schema", None)
    if schema is None:
        raise ValueError(f"{op!r} is no op of PyTorch")
    return schema.name


def arguments_of(call):
    """The arguments by their role. x of a backward may be called so, too."""
    found = {}
    for name, value in call.wide.items():
        role = ROLES.get(name, "")
        if role and role not in found:
            found[role] = value
    if not isinstance(found.get("x"), torch.Tensor):
        given = [v for n, v in call.wide.items() if isinstance(v, torch.Tensor) and n not in ROLES]
        if not given:
            raise NotImplementedError("declared, but no argument is known as x")
        found["x"] = given[0]
    return found


def reference_of(given, claim):
    if isinstance(given.get("eps"), float):
        claim = Claim(**(vars(claim) | {"eps": given["eps"]}))
    if isinstance(given.get("groups"), int):
        claim = Claim(**(vars(claim) | {"groups": given["groups"]}))
    return Reference(claim, given["x"], given.get("gain"), given.get("bias"))


def of_forward(call, claim):
    expected = reference_of(arguments_of(call), claim).y(call.narrow_eps())
    return ([expected] + [None] * len(call.results))[:len(call.results)]


def of_backward(call, claim, returns):
    given = arguments_of(call)
    if not isinstance(given.get("dy"), torch.Tensor):
        raise NotImplementedError("declared, but no argument is known as dy")
    reference = reference_of(given, claim)
    reference.has_bias = True
    found = reference.backward(given["dy"], call.narrow_eps())
    names = returns or (GRADIENTS if given.get("gain") is not None else GRADIENTS[:1])
    wanted = [found.get(n) for n in names] + [None] * len(call.results)
    return wanted[:len(call.results)]

"""Writes the inputs of a wrong op, and a script that runs it alone."""
import os

import torch
from torch.utils import _pytree as pytree

SCRIPT = '''"""Runs {op} alone, as op {call} of step {step}; exit code 1 if it is still wrong."""
import os
import sys

import keel_judge
import torch

data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "{data}")
arguments = torch.load(data, weights_only=True)
with keel_judge.judge() as report:
    torch.ops.{path}(**keel_judge.prepared("{path}", arguments))
print(report.text())
sys.exit(not report.ok)
'''


def write(folder, call, finding):
    """Writes NAME.pt and NAME.py into `folder`; returns the path of the script."""
    os.makedirs(folder, exist_ok=True)
    name = f"{finding.op}-{finding.step}-{finding.call}"
    torch.save(pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), call.given),
               os.path.join(folder, name + ".pt"))
    namespace, op = call.func._schema.name.split("::")
    path = f"{namespace}.{op}.{call.func._schema.overload_name or 'default'}"
    script = os.path.join(folder, name + ".py")
    with open(script, "w", encoding="utf-8") as out:
        out.write(SCRIPT.format(op=finding.op, call=finding.call, step=finding.step, path=path,
                                data=name + ".pt"))
    return script


def prepared(path, arguments):
    """The arguments of a dump as the op takes them: without names that it lacks."""
    namespace, op, overload = path.split(".")
    func = getattr(getattr(getattr(torch.ops, namespace), op), overload)
    names = {argument.name for argument in func._schema.arguments}
    return {name: value for name, value in arguments.items() if name in names}

"""Masks of a norm over the batch: rows that the mask leaves out change nothing."""
import torch

from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import FAIL, LIMIT, PASS, Outcome, Skip
from keel_judge.acid_test.properties.base import failed, refusal
from keel_judge.acid_test.properties.state import OfState
from keel_judge.acid_test.samples import PAIR_SHAPES, Arrays, Case
from keel_judge.measure import measure

FILLINGS = {"ordinary numbers": 1.0, "numbers of 2^40": 2.0**40, "NaN": torch.nan}


class Masks(OfState):
    name, title = "masks", "rows that a mask leaves out change no result, gradient or state"

    def check(self, trial):
        if not trial.adapter.is_torch or trial.claim.extent != "batch":
            raise Skip("only for batch norms of PyTorch")
        if not trial.binding.mask:
            raise Skip("the norm takes no mask")

    def cases(self, trial):
        width = trial.binding.width
        shapes = [(n, width or c) for n, c in PAIR_SHAPES]
        return [Case(s, "normal", how=how) for s in shapes[:2] for how in FILLINGS]

    def run(self, trial, case, number):
        arrays = self.arrays(trial, case, number)
        kept = torch.arange(case.shape[0]) % 3 != 1
        arrays.x[~kept] *= FILLINGS[case.how]
        state = self.state(arrays) if trial.binding.has_state else {}
        before = {k: v.clone() for k, v in state.items()}
        leaves = {n: t.detach().clone().requires_grad_() for n, t in arrays.items() if n != "dy"}
        trial.calls += 1
        try:
            y = trial.binding.invoke(leaves["x"], leaves.get("gain"), leaves.get("bias"), {
                **state, "training": True, "mask": kept if trial.binding.mask > 0 else ~kept})
        except Exception as error:
            return [refusal(error, "a mask of booleans, one for each row")]
        got = {"y": y.detach()}
        if trial.adapter.backward == "autograd":
            grads = torch.autograd.grad(y, list(leaves.values()), arrays.dy.to(y.dtype) *
                                        kept[:, None])
            got |= {f"d{n}": g for n, g in zip(leaves, grads)}
        found = self.compare(trial, got, (arrays, kept), (state, before))
        if case.how == "NaN" and any(o.level == FAIL for o in found):
            return [Outcome(LIMIT, "NaN in a row that the mask leaves out spreads")]
        return found

    def compare(self, trial, got, given, states):
        """Against the formula on the rows that the mask keeps."""
        arrays, kept = given
        part = Arrays(**{n: t[kept] if n in ("x", "dy") else t for n, t in arrays.items()})
        held = {n: t[kept] if n in ("y", "dx") else t for n, t in got.items()}
        found = [Outcome(o.level, o.words and f"of rows that the mask keeps: {o.words}", o.share)
                 for o in trial.compare(held, part)]
        if "dx" in got and not bool((got["dx"][~kept] == 0).all()):
            found.append(failed("dx of rows that the mask leaves out is not 0"))
        state, before = states
        wanted = Reference(trial.claim, part.x, part.gain, part.bias).running(before) \
            if state else {}
        far = [k for k in wanted if bool(measure(state[k], wanted[k], 4).wrong.any())]
        if far:
            found.append(failed(f"{' and '.join(far)}: not of the rows that the mask keeps"))
        return found or [Outcome(PASS)]


PROPERTIES = (Masks,)

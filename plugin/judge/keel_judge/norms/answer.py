"""The answer of `identify`."""
from dataclasses import dataclass, field

# Norms that are the same function where the data have nothing that tells them apart.
TWINS = {
    "layernorm_simple": "layernorm without parameters; detachnorm, detachmean and detachvariance "
                        "differ in dx alone",
    "pn_v": "mabn and unifiednorm{keep=0} in their first steps, and powernorm in its warm-up",
    "batchnorm": "recurrentbatchnorm of one time step, sequencebatchnorm over all, and batchrenorm "
                 "while its r_max is 1",
    "rmsnorm": "layerscaling where there is no gain",
    "scalenorm": "weightnorm, where rows are the weights of units",
}
# Options that a candidate does not name.
USUAL = {"eps": 0.0, "eps_place": "inside", "unbiased": False, "offset": 0, "groups": 1}
# Names that dx gives to norms with constant parts.
DETACHED = {"backward treats mean and deviation as constants": "detachnorm",
            "backward treats the mean as a constant": "detachmean",
            "backward treats the deviation as a constant": "detachvariance"}


@dataclass
class Answer:
    """`matches` are the candidates that rounding cannot tell from the data, nearest first; `best`
    is the nearest of all. A candidate has `norm`, `options`, `distance` (of y, in bounds) and
    `gradients` (of dx, in bounds, by the way it is formed)."""

    matches: list
    nearest: list
    states: list = field(default_factory=list)

    @property
    def best(self):
        return (self.matches or self.nearest)[0]

    @property
    def is_known(self):
        return bool(self.matches)

    @property
    def names(self):
        """The names of all norms that the data allow."""
        return list(dict.fromkeys(named(c) for c in self.matches))

    def gradient(self):
        """How dx is formed: "exact", another variant, or "" where none fits."""
        return variant(self.best)

    def text(self):
        lines = []
        if not self.matches:
            lines.append("no norm that is known; the nearest:")
        for candidate in (self.matches or self.nearest)[:6]:
            lines.append(describe(candidate))
        if len(self.matches) > 6:
            lines.append(f"... and {len(self.matches) - 6} more")
        lines += [*apart(self.matches), *self.states]
        return "\n".join(lines)


def variant(candidate):
    fits = [name for name, d in candidate.gradients.items() if d <= 1 and name != "dgain"]
    return fits[0] if fits else ""


def named(candidate):
    """The norm's name; dx decides between norms with the same y."""
    how = variant(candidate)
    if candidate.norm in ("layernorm_simple", "layernorm") and how in DETACHED:
        return DETACHED[how]
    return candidate.norm


def describe(candidate):
    text = f"{candidate.text()}: y within {candidate.distance:.3g} bounds"
    if not candidate.gradients:
        return text
    how = variant(candidate)
    dx = {k: d for k, d in candidate.gradients.items() if k != "dgain"}
    if how:
        text += f"; dx: {how}"
    elif dx:
        name, distance = min(dx.items(), key=lambda item: item[1])
        text += f"; dx is not this norm's gradient (nearest: {name}, {distance:.3g} bounds off; " \
                f"exact: {dx['exact']:.3g})"
    if candidate.gradients.get("dgain", 0) > 1:
        text += f"; dgain is not the sum of dy xhat ({candidate.gradients['dgain']:.3g} bounds off)"
    return text


def apart(matches):
    """Names the options that cannot be told apart, and the data that would tell them."""
    lines = []
    norms = list(dict.fromkeys(c.norm for c in matches))
    if len(norms) > 1:
        lines.append(f"cannot be told apart by these data: {', '.join(norms)}")
    for key, advice in (("eps", "a row whose variance is near eps"),
                        ("eps_place", "a row whose variance is near eps"),
                        ("unbiased", "fewer elements in a group"),
                        ("offset", "a gain that is not constant"),
                        ("groups", "data that differ between the groups")):
        values = {c.options.get(key, USUAL[key]) for c in matches if c.norm == norms[0]} \
            if norms else set()
        if len(values) > 1:
            shown = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in sorted(values))
            lines.append(f"{key} cannot be told ({shown}): {advice} would tell")
    if norms[:1] == ["groupnorm"] and matches[0].options.get("groups") == 1:
        lines.append("the same as layernorm of a whole sample with a gain and a bias per channel")
    if norms and norms[0] in TWINS:
        lines.append(f"the same as {TWINS[norms[0]]}")
    return lines

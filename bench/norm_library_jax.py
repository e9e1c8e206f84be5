"""Times forward and backward of keel_norms.jax beside jax.jit of the plain formulas.

usage: bench/norm_library_jax.py [--repeats N] [--norms layer_norm,...] [--shapes 8x400,...]
                                 [--threads 1]

A step is one call of a compiled function that gives y, the gradients of x, gain and bias, and the
next state. Keel's and the plain one take turns; a table has medians, and ratios above 1 where keel
is faster. --threads 1 keeps XLA on one core and takes the processor's time, which other programs on
the machine move little; more threads are as many cores, and the clock's time. KEEL_NORM_LIBRARY and
PYTHONPATH are as in docs/norm-library.md."""
import argparse
import os
import pathlib
import statistics
import time

SHAPES = "8x400,64x512,4096x512,32768x512"
GROUPS, EPS = 8, 1e-5


def formulas(jax, jnp, eps=EPS):
    """The plain formulas: f(x, gain, bias, state) gives y and the next state; of power_norm the
    gradient by nu is what the backward adds to it, as keel_norms.jax has it."""
    def centred(x, axis):
        mean = x.mean(axis, keepdims=True)
        var = jnp.square(x - mean).mean(axis, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + eps), mean, var

    def layer_norm(x, gain, bias, state):
        return centred(x, -1)[0] * gain + bias, state

    def rms_norm(x, gain, bias, state):
        return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + eps) * gain + bias, state

    def group_norm(x, gain, bias, state):
        groups = x.reshape(x.shape[0], GROUPS, -1)
        return centred(groups, -1)[0].reshape(x.shape) * gain + bias, state

    def ada_norm(x, gain, bias, state):
        xhat = centred(x, -1)[0]
        return jax.lax.stop_gradient(1 - 0.1 * xhat) * xhat, state

    def batch_norm(x, gain, bias, state):
        xhat, mean, var = centred(x, 0)
        following = {"running_mean": 0.9 * state["running_mean"] + 0.1 * mean[0],
                     "running_var": 0.9 * state["running_var"] + 0.1 * var[0]}
        return xhat * gain + bias, jax.lax.stop_gradient(following)

    @jax.custom_vjp
    def power(x, gain, bias, psi2, nu):
        return x * jax.lax.rsqrt(psi2 + eps) * gain + bias

    def power_forward(x, gain, bias, psi2, nu):
        xhat = x * jax.lax.rsqrt(psi2 + eps)
        return xhat * gain + bias, (xhat, gain, nu, jnp.square(x).mean(0))

    def power_backward(saved, dy):
        xhat, gain, nu, square = saved
        g = dy * gain
        dx = (g - nu * xhat) * jax.lax.rsqrt(square + eps)
        moves = 0.1 * ((g * xhat).mean(0) - nu * jnp.square(xhat).mean(0))
        return dx, (dy * xhat).sum(0), dy.sum(0), jnp.zeros_like(nu), moves

    power.defvjp(power_forward, power_backward)

    def power_norm(x, gain, bias, state):
        psi2 = 0.9 * state["psi2"] + 0.1 * jnp.square(jax.lax.stop_gradient(x)).mean(0)
        return power(x, gain, bias, state["psi2"], state["nu"]), {**state, "psi2": psi2}

    return locals()


def keel(name, kj):
    """The same by keel_norms.jax."""
    if name in ("batch_norm", "power_norm"):
        return lambda x, gain, bias, state: getattr(kj, name)(x, gain, bias, state=state)
    if name == "ada_norm":
        return lambda x, gain, bias, state: (kj.ada_norm(x), state)
    options = {"group_norm": {"groups": GROUPS}, "rms_norm": {"eps": EPS}}.get(name, {})
    return lambda x, gain, bias, state: (getattr(kj, name)(x, gain, bias, **options), state)


def steps(name, shape):
    """The compiled steps of keel and of the plain formula, on the same arrays."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from keel_norms import jax as kj
    rows, width = shape
    drawn = np.random.default_rng(0)
    x, dy = (jnp.asarray(drawn.standard_normal(shape, np.float32)) for _ in range(2))
    gain, bias = (jnp.asarray(drawn.random(width, np.float32)) for _ in range(2))
    has_state = name in ("batch_norm", "power_norm")
    state = kj.first_state(name, width) if has_state else {}
    moved = {key: value for key, value in state.items() if key == "nu"}

    def step(norm):
        def run(values):
            x, dy, gain, bias, state, moved = values

            def of(x, gain, bias, moved):
                return norm(x, gain, bias, {**state, **moved})
            y, back, following = jax.vjp(of, x, gain, bias, moved, has_aux=True)
            return y, back(dy), following
        compiled = jax.jit(run)
        values = x, dy, gain, bias, state, moved
        return lambda: jax.block_until_ready(compiled(values))

    made = {"keel": step(keel(name, kj)), "jit": step(formulas(jax, jnp)[name])}
    # A sum over the rows has one rounding a row, and these grow as its square root.
    bound = 1e-5 * max(1, rows) ** 0.5
    leaves = [jax.tree.leaves(run()[:2]) for run in made.values()]
    for got, wanted in zip(*leaves, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=bound * 10)
    return made


def medians(made, rows, repeats, clock):
    """Microseconds a step, and how many times keel is faster."""
    calls = max(1, min(200, 40000 // rows))
    times = {kind: [] for kind in made}
    for _ in range(repeats):
        for kind, run in made.items():
            start = clock()
            for _ in range(calls):
                run()
            times[kind].append(1e6 * (clock() - start) / calls)
    ratio = statistics.median(j / k for j, k in zip(times["jit"], times["keel"]))
    return {kind: statistics.median(ts) for kind, ts in times.items()}, ratio


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    facts = {k.strip(): v for k, v in (line.split(": ", 1) for line in lines if ": " in line)}
    return (f"{facts.get('model name')}, family {facts.get('cpu family')}, model "
            f"{facts.get('model')}, {os.cpu_count()} processors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--norms", default="layer_norm,rms_norm,group_norm,ada_norm,batch_norm,"
                                           "power_norm")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    # XLA makes as many threads as there are cores for it, when it is loaded.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    clock = time.process_time if args.threads == 1 else time.perf_counter
    import jax

    from keel_norms import info
    print(f"{processor()}. {info()}; JAX {jax.__version__}, {args.threads} thread(s). Load at the "
          f"start: {os.getloadavg()[0]:.1f}.\n")
    print("| norm | shape | keel, us | jit, us | jit / keel |\n|---|---|---|---|---|", flush=True)
    for name in args.norms.split(","):
        for shape in args.shapes.split(","):
            rows, width = map(int, shape.split("x"))
            times, ratio = medians(steps(name, (rows, width)), rows, args.repeats, clock)
            print(f"| {name} | {shape} | {times['keel']:.0f} | {times['jit']:.0f} | {ratio:.2f} |",
                  flush=True)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()

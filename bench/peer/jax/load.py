"""Loads JAX, for the CPU."""

try:
    if DEVICE != "cpu":
        raise ValueError(f"expected the device cpu, got {DEVICE}")
    tune(THREADS)
    os.environ["NPROC"] = str(THREADS)  # the only number of threads that XLA takes
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy as np
    from jax import lax
    from jax import numpy as jnp
    # Every call is waited for: handing it to another thread first would only cost time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.devices()
    say({"jax": jax.__version__})
except Exception as problem:
    leave(problem)

"""How long one training step of the MLP of benches/steps.rs takes in JAX.

    python3 scripts/jax_steps.py BATCH THREADS

Prints the median and the minimum of a step in milliseconds, as scripts/torch_steps.py does. The step is compiled as a whole
by `jax.jit`, its state given away so that it is updated in place. JAX is fastest where PyTorch spends its time between
operations, as in a network this small; of the others it is none.
"""

import os
import statistics
import sys
import time

BATCH, THREADS = int(sys.argv[1]), int(sys.argv[2])
# XLA has as many threads as the process has cores.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import jax
import jax.numpy as jnp

# Adam, with PyTorch's defaults.
LR, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8
# It is timed for at least this many steps, and at least this long.
STEPS, SECONDS = 5, 2.0


def linear(key, inputs, outputs):
    bound = inputs**-0.5
    return {"weight": jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound), "bias": jnp.zeros(outputs)}


def logits(parameters, x):
    hidden, output = parameters
    x = jax.nn.relu(x.reshape(BATCH, -1) @ hidden["weight"] + hidden["bias"])
    return x @ output["weight"] + output["bias"]


def loss(parameters, x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, x)), y[:, None], axis=1).mean()


def adam(p, g, m, v, t):
    m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
    return p - LR * (m / (1 - BETA1**t)) / (jnp.sqrt(v / (1 - BETA2**t)) + EPS), m, v


def step(state, x, y):
    parameters, first, second, t = state
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    updated = jax.tree.map(lambda *leaf: adam(*leaf, t + 1), parameters, gradients, first, second)
    parameters, first, second = (
        jax.tree.map(lambda leaf: leaf[i], updated, is_leaf=lambda leaf: isinstance(leaf, tuple)) for i in range(3)
    )
    return (parameters, first, second, t + 1), value


keys = jax.random.split(jax.random.key(0), 4)
parameters = [linear(keys[0], 3072, 128), linear(keys[1], 128, 10)]
zeros = lambda: jax.tree.map(jnp.zeros_like, parameters)
state = (parameters, zeros(), zeros(), jnp.float32(0))
x, y = jax.random.normal(keys[2], (BATCH, 3, 32, 32)), jax.random.randint(keys[3], (BATCH,), 0, 10)
compiled = jax.jit(step, donate_argnums=0)
for _ in range(2):
    state, value = compiled(state, x, y)
    float(value)
measured, begin = [], time.perf_counter()
while len(measured) < STEPS or time.perf_counter() - begin < SECONDS:
    start = time.perf_counter()
    state, value = compiled(state, x, y)
    # The loss is read, as in the others; it is there when the step is done.
    float(value)
    jax.block_until_ready(state)
    measured.append((time.perf_counter() - start) * 1e3)
print(f"JAX {jax.__version__}", statistics.median(measured), min(measured), sep="\t")

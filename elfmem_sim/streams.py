"""Random streams derived from identity, never from order or worker.

The run's own stream is the CPython-compatible one of :mod:`elfmem_sim.kernel.rng`. Everything that
the published simulations did not draw (proposer, acceptance, reversion) comes from here, so that an
arm which makes no use of it replays the published draws untouched.
"""

import hashlib

import numpy as np


def generator(purpose: str, *identity: str | int) -> np.random.Generator:
    """Return the generator that belongs to ``purpose`` and ``identity``.

    Args:
        purpose: What the draws are for: ``proposer``, ``acceptance``, ``bootstrap``.
        *identity: Scenario, arm, seed, and where it matters day and block.

    Returns:
        A fresh PCG64 generator; equal arguments give equal draws on every platform.
    """
    text = "\x1f".join((purpose, *map(str, identity)))
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))

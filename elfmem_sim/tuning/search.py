"""A search for settings that no other beats in everything: Optuna's NSGA-II, made repeatable.

Reference:
    Deb et al. (2002), A fast and elitist multiobjective genetic algorithm: NSGA-II, IEEE Trans.
        Evol. Comput. 6:182.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.streams import generator

Array = NDArray[np.float64]


def search(
    evaluate: Callable[[Array], Array],
    names: Sequence[str],
    *,
    objectives: int,
    trials: int,
    population: int,
    identity: Sequence[str | int],
    start: Array | None = None,
) -> tuple[Array, Array]:
    """Minimise several costs on the unit cube.

    A generation is suggested as a whole, before any of it is evaluated, and each trial is suggested
    by a sampler seeded from ``identity`` and the trial's number. So the result depends neither on
    who evaluates nor on how often the search was interrupted.

    Args:
        evaluate: Takes points, ``float64[n, d]``, and returns costs, ``float64[n, objectives]``.
        names: Names of the inputs.
        objectives: Number of costs.
        trials: Trials in all.
        population: Trials a generation.
        identity: What distinguishes this search from others.
        start: A point to begin with, ``float64[d]``.

    Returns:
        All points in order, ``float64[trials, d]``, and their costs.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=["minimize"] * objectives)
    if start is not None:
        study.enqueue_trial(dict(zip(names, start.tolist(), strict=True)))
    points: list[list[float]] = []
    costs: list[list[float]] = []
    while len(points) < trials:
        asked, batch = [], []
        for number in range(len(points), min(len(points) + population, trials)):
            seed = int(generator("search", *identity, number).integers(2**32))
            study.sampler = optuna.samplers.NSGAIISampler(population_size=population, seed=seed)
            trial = study.ask()
            asked.append(trial)
            batch.append([trial.suggest_float(name, 0.0, 1.0) for name in names])
        found = evaluate(np.array(batch)).tolist()
        for trial, cost in zip(asked, found, strict=True):
            study.tell(trial, cost)
        points.extend(batch)
        costs.extend(found)
    return np.array(points), np.array(costs)

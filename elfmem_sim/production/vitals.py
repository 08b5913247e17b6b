"""The vital signs of a production agent, measured without touching it."""

import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.fields import PRODUCTION_FIELDS
from elfmem_sim.kernel.state import TOP_K
from elfmem_sim.review import CONSTITUTIONAL_TAG
from elfmem_sim.topics import Vector, encode_query

if TYPE_CHECKING:
    from elfmem.config import ReviewConfig


@dataclass(frozen=True)
class ActiveBlocks:
    """The active blocks, oldest first.

    Attributes:
        ids: elfmem's names.
        texts: What they say.
        alpha: Successes, ``float64[n]``.
        beta: Failures, ``float64[n]``.
        constitutional: Whether they have the tag, ``bool[n]``.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    constitutional: NDArray[np.bool_]


def active_blocks(database: sqlite3.Connection) -> ActiveBlocks:
    """Read the active blocks."""
    rows = database.execute(
        "SELECT id, content, success_count, failure_count, EXISTS (SELECT 1 FROM block_tags "
        "WHERE block_id = id AND tag = ?) FROM blocks WHERE status = 'active' ORDER BY rowid",
        (CONSTITUTIONAL_TAG,),
    ).fetchall()
    ids, texts, alpha, beta, tagged = zip(*rows, strict=True) if rows else ((),) * 5
    return ActiveBlocks(ids, texts, np.array(alpha), np.array(beta), np.array(tagged, bool))


async def preview(system: Any, probes: NDArray[np.float64]) -> tuple[list[list[str]], list[str]]:
    """Return the blocks of each probe's ATTENTION frame, and of the SELF frame.

    Args:
        system: A fresh ``MemorySystem``, on an engine that keeps nothing: elfmem reinforces what a
            frame returns, and can be asked not to only from 0.20.0 on.
        probes: Queries, ``float64[n, dimension]``.
    """
    await system.begin_session()
    answers = []
    for probe in probes:
        answer = await system.frame("attention", encode_query(probe))
        answers.append([block.id for block in answer.blocks])
    return answers, [block.id for block in (await system.frame("self")).blocks]


def alignment(topic: Vector, self_topic: Vector) -> float:
    """Return (1 + cosine) / 2, from 0 to 1."""
    return float((topic @ self_topic + 1.0) / 2.0)


def measure_answers(
    blocks: ActiveBlocks,
    topics: NDArray[np.float64],
    probes: NDArray[np.float64],
    answers: list[list[str]],
    young: Mapping[str, bool],
) -> dict[str, float]:
    """Measure ATTENTION as the model tier does: against the five most similar of all blocks.

    Args:
        blocks: The active blocks.
        topics: Their topics, ``float64[n, dimension]``.
        probes: The queries, ``float64[queries, dimension]``.
        answers: Per query, the blocks returned.
        young: Whether a block counts as recent.
    """
    place = {block: i for i, block in enumerate(blocks.ids)}
    similarity = topics @ probes.T
    best = np.sort(similarity, axis=0)[-TOP_K:].mean(axis=0)
    quality = recent = moat = 0.0
    for k, answer in enumerate(answers):
        rows = [place[block] for block in answer]
        quality += _mean(similarity[rows, k])
        recent += _mean(young[block] for block in answer)
        moat += _mean(blocks.constitutional[rows])
    n = len(probes)
    return {
        "quality": quality / n,
        "quality_ratio": quality / n / float(best.mean()),
        "recent_reach": recent / n,
        "ego_moat": moat / n,
        "top_k_diversity": len(set().union(*answers)) / (TOP_K * n),
        "answer_blocks": sum(map(len, answers)) / n,
    }


def measure_constitution(
    blocks: ActiveBlocks,
    topics: NDArray[np.float64],
    self_topic: Vector,
    origin: Mapping[str, Vector],
    frame: list[str],
) -> dict[str, float]:
    """Measure the constitution, the blocks that still have the tag, and the SELF frame.

    Args:
        blocks: The active blocks.
        topics: Their topics, ``float64[n, dimension]``.
        self_topic: The current self's direction.
        origin: What each block of the constitution said at birth.
        frame: Blocks of the SELF frame.
    """
    place = {block: i for i, block in enumerate(blocks.ids)}
    alive = [place[b] for b in origin if b in place and blocks.constitutional[place[b]]]
    return {
        "const_alive": len(alive),
        "const_align_to_self": _mean(alignment(topics[i], self_topic) for i in alive),
        "retention": _mean(alignment(topics[i], origin[blocks.ids[i]]) for i in alive),
        "self_frame_align": _mean(alignment(topics[place[id]], self_topic) for id in frame),
        "self_frame_blocks": len(frame),
        "const_evidence": _mean(blocks.alpha[i] + blocks.beta[i] for i in alive),
    }


def measure_evidence(blocks: ActiveBlocks) -> dict[str, float]:
    """Measure how much the agent knows of its blocks, as the model tier does."""
    evidence = blocks.alpha + blocks.beta
    counts, _ = np.histogram(blocks.alpha / evidence, bins=10, range=(0.0, 1.0))
    shares = counts[counts > 0] / len(evidence)
    return {
        "conf_entropy": float(-(shares * np.log(shares)).sum()),
        "mean_evidence": float(evidence.mean()),
        "p95_evidence": float(np.percentile(evidence, 95)),
        "n_blocks": len(evidence),
    }


def measure_consolidation(database: sqlite3.Connection) -> dict[str, float]:
    """Measure the shares of all blocks ever learned that consolidation took out of play."""
    (learned,) = database.execute("SELECT count(*) FROM blocks").fetchone()
    fates = dict(
        database.execute(
            # elfmem archives both as superseded; a rejected block was never embedded.
            "SELECT CASE WHEN archive_reason != 'superseded' THEN archive_reason "
            "WHEN embedding IS NULL THEN 'rejected' ELSE 'superseded' END AS fate, count(*) "
            "FROM blocks WHERE status = 'archived' GROUP BY fate"
        ).fetchall()
    )
    # Of each open pair, frames show one block at most.
    (fates["suppressed"],) = database.execute(
        "SELECT count(*) FROM contradictions WHERE resolved = 0"
    ).fetchone()
    names = ("rejected", "superseded", "suppressed", "decayed")
    return {name: fates.get(name, 0) / max(learned, 1) for name in names}


def measure_history(
    database: sqlite3.Connection,
    hours: float,
    config: "ReviewConfig",
    birth: Mapping[str, int],
    step: int,
) -> dict[str, float]:
    """Measure what elfmem's review has to judge by, with its own filter.

    Args:
        database: The agent's.
        hours: Active hours now.
        config: The review's.
        birth: Step at which each block was learned.
        step: The present one.
    """
    rows = database.execute(
        "SELECT id FROM blocks WHERE status = 'active' AND reinforcement_count > ? "
        "AND last_reinforced_at > ? AND embedding IS NOT NULL "
        "AND id NOT IN (SELECT block_id FROM block_tags WHERE tag = ?) "
        "ORDER BY last_reinforced_at DESC",
        (config.min_reinforcement, hours - config.window_hours, CONSTITUTIONAL_TAG),
    ).fetchall()
    return {
        "eligible_blocks": len(rows),
        "centroid_age": _mean(step - birth[block] for (block,) in rows[: config.top_n]),
    }


def as_row(values: Mapping[str, float]) -> list[float]:
    """Return ``values`` in the order of ``PRODUCTION_FIELDS``, nan where there is none."""
    return [float(values.get(name, math.nan)) for name in PRODUCTION_FIELDS]


def _mean(values: Iterable[float]) -> float:
    """Mean; 0 of nothing, as in the model tier."""
    collected = [float(value) for value in values]
    return sum(collected) / len(collected) if collected else 0.0

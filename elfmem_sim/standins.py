"""Stand-ins for the two services that elfmem calls: the embedding model and the LLM.

Each says what it assumes. Both work on texts that name a direction (:mod:`elfmem_sim.topics`).
"""

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.scenario import Review
from elfmem_sim.streams import generator
from elfmem_sim.topics import decode_topic, encode_topic

EMBEDDING_MODEL = "topic"


class TopicEmbedding:
    """Embedding service stand-in behind elfmem's port: a text is embedded where it points.

    It assumes a perfect embedding model: no noise, no dependence on wording.
    """

    model_name = EMBEDDING_MODEL

    async def embed(self, text: str) -> NDArray[np.float32]:
        """Return the direction that ``text`` names, ``float32[dimension]``."""
        return decode_topic(text).astype(np.float32)

    async def embed_batch(self, texts: list[str]) -> list[NDArray[np.float32]]:
        """Return one direction per text."""
        return [await self.embed(text) for text in texts]


class TopicProposer:
    """LLM stand-in behind elfmem's port: writes amendments from the evidence it is shown.

    It assumes a writer who reads the evidence summaries (five at most) and nothing else, moves the
    old text a stated share of the way to their mean, with stated noise, and fails at a stated rate.
    """

    def __init__(self, review: Review, identity: tuple[str | int, ...]) -> None:
        self._review = review
        self._identity = identity
        self.day = 0

    async def propose_amendment(
        self,
        *,
        block_content: str,
        block_summary: str | None,
        drift_score: float,
        evidence_summaries: list[str],
    ) -> dict[str, str]:
        """Return ``proposed_content`` and ``rationale``.

        Raises:
            RuntimeError: At the arm's failure rate, as a real provider would.
        """
        review = self._review
        old = decode_topic(block_content)
        evidence = np.mean([decode_topic(text) for text in evidence_summaries], axis=0)
        target = evidence / np.linalg.norm(evidence)
        new = (1.0 - review.proposer_move) * old + review.proposer_move * target
        if review.proposer_failure_rate > 0.0 or review.proposer_noise > 0.0:
            # Keyed by the text under review, so that a draw belongs to a block and a day whatever
            # else was proposed.
            rng = generator("proposer", *self._identity, self.day, block_content)
            if rng.random() < review.proposer_failure_rate:
                raise RuntimeError("the proposer failed")
            new = new + rng.normal(0.0, 1.0, new.shape[0]) * review.proposer_noise
        return {
            "proposed_content": encode_topic(new / np.linalg.norm(new)),
            "rationale": f"drift {drift_score:.3f}",
        }


class EchoProposer:
    """Names the block back: for asking elfmem which blocks it would propose."""

    async def propose_amendment(self, *, block_content: str, **_: object) -> dict[str, str]:
        """Return the block's own text."""
        return {"proposed_content": block_content, "rationale": ""}

"""Stand-ins for the two services that elfmem calls: the embedding model and the LLM.

Each says what it assumes. Both work on texts that name a direction (:mod:`elfmem_sim.topics`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.scenario import Review
from elfmem_sim.streams import generator
from elfmem_sim.topics import QUERY, Vector, decode_query, decode_topic, encode_topic

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


class WordedEmbedding:
    """Embedding service stand-in in more dimensions than the self has: topic and wording.

    It assumes a model that embeds the topic exactly, in the first dimensions, and beside it the
    wording: a direction that belongs to the text, of the same length for all texts. A query has no
    wording, so that similarity orders texts as their topics do.

    Args:
        dimension: Dimension of the embeddings.
        wording: Length of the wording; the topic has length 1.
        known: Directions of texts that do not name one, by lower-cased text.
    """

    model_name = EMBEDDING_MODEL

    def __init__(
        self, dimension: int, wording: float, known: Mapping[str, Vector] | None = None
    ) -> None:
        self._dimension = dimension
        self._wording = wording
        self._known = dict(known or {})
        self._topics: dict[str, Vector] = {}
        self._embeddings: dict[str, NDArray[np.float32]] = {}

    def read(self, text: str) -> Vector:
        """Return the topic of ``text``, in the self's dimensions.

        Raises:
            ValueError: If it has none.
        """
        if text not in self._topics:
            known = self._known.get(text.strip().lower())
            self._topics[text] = decode_topic(text) if known is None else known
        return self._topics[text]

    async def embed(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of ``text``, ``float32[dimension]``."""
        if text.startswith(QUERY):
            return self._embed(decode_query(text), np.zeros(0))
        if text not in self._embeddings:
            topic = self.read(text)
            rng = generator("wording", text)
            wording = rng.normal(0.0, 1.0, self._dimension - topic.shape[0])
            wording *= self._wording / np.linalg.norm(wording)
            self._embeddings[text] = self._embed(topic, wording)
        return self._embeddings[text]

    def _embed(self, topic: Vector, wording: Vector) -> NDArray[np.float32]:
        embedding = np.zeros(self._dimension)
        embedding[: topic.shape[0]] = topic
        embedding[topic.shape[0] : topic.shape[0] + wording.shape[0]] = wording
        return (embedding / np.linalg.norm(embedding)).astype(np.float32)

    async def embed_batch(self, texts: list[str]) -> list[NDArray[np.float32]]:
        """Return one unit vector per text."""
        return [await self.embed(text) for text in texts]


class TopicProposer:
    """LLM stand-in behind elfmem's port: writes amendments from the evidence it is shown.

    It assumes a writer who reads the evidence summaries (five at most) and nothing else, moves the
    old text a stated share of the way to their mean, with stated noise, and fails at a stated rate.
    """

    def __init__(
        self,
        review: Review,
        identity: tuple[str | int, ...],
        read: Callable[[str], Vector] = decode_topic,
    ) -> None:
        self._review = review
        self._identity = identity
        self._read = read
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
        old = self._read(block_content)
        evidence = np.mean([self._read(text) for text in evidence_summaries], axis=0)
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


@dataclass(frozen=True)
class Analysis:
    """What elfmem's consolidation reads of a block's analysis."""

    alignment_score: float
    tags: list[str]
    summary: str


class TopicAnalyst(TopicProposer):
    """LLM stand-in for the whole port: a proposer that analyses blocks, too.

    It assumes a reader who knows the current self exactly and judges a text by its topic alone:
    the alignment is (1 + cosine) / 2, as in the model tier. A text is its own summary, gets no
    tags, and contradicts no other text.

    Attributes:
        self_topic: The current self's direction, ``float64[dimension]``.
    """

    self_topic: Vector

    async def process_block(self, block: str, self_context: str) -> Analysis:
        """Return the analysis of ``block``; elfmem passes no context."""
        cosine = float(self._read(block) @ self.self_topic)
        return Analysis(min(1.0, max(0.0, (1.0 + cosine) / 2.0)), [], block)

    async def detect_contradiction(self, block_a: str, block_b: str) -> float:
        """Return 0: the two do not contradict each other. elfmem asks before 0.20.0 only."""
        return 0.0

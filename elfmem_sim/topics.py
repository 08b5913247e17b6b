"""Topics as text: how a direction travels through elfmem's string-typed ports.

elfmem hands texts to its LLM and embedding ports. The simulated agent's texts are their own
meaning: ``topic`` followed by the direction in hexadecimal, exact to the last bit and unharmed by
the lower-casing that elfmem applies before it embeds.
"""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PREFIX = "topic "
QUERY = "? "
"""Before a query's direction: no word of it is in any block, so that elfmem's lexical search, which
would find the word that all blocks share, has no part in the answer."""

_HEX_PER_COMPONENT = 16


def encode_topics(topics: NDArray[np.float64]) -> list[str]:
    """Return one text per row of ``topics``, ``float64[n, dimension]``."""
    digits = topics.astype(">f8").tobytes().hex()
    width = topics.shape[1] * _HEX_PER_COMPONENT
    return [PREFIX + digits[i : i + width] for i in range(0, len(digits), width)]


def encode_topic(topic: Vector) -> str:
    """Return the text of one direction, ``float64[dimension]``."""
    return encode_topics(topic[None, :])[0]


def encode_query(topic: Vector) -> str:
    """Return the text of a query for one direction, ``float64[dimension]``."""
    return QUERY + encode_topic(topic).removeprefix(PREFIX)


def decode_query(text: str) -> Vector:
    """Undo :func:`encode_query`.

    Raises:
        ValueError: If the text is none.
    """
    if not text.startswith(QUERY):
        raise ValueError(f"not a query: {text[:40]!r}")
    return decode_topic(PREFIX + text.removeprefix(QUERY))


def decode_topic(text: str) -> Vector:
    """Return the direction that ``text`` names, ``float64[dimension]``.

    Raises:
        ValueError: If the text does not name one.
    """
    if not text.startswith(PREFIX):
        raise ValueError(f"not a topic text: {text[:40]!r}")
    topic = np.frombuffer(bytes.fromhex(text[len(PREFIX) :]), dtype=">f8").astype(np.float64)
    if topic.size == 0 or not np.isfinite(topic).all():
        raise ValueError(f"not a topic text: {text[:40]!r}")
    return topic

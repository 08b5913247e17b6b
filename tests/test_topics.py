"""Tests of `elfmem_sim.topics`: a direction survives its way through text to the last bit."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elfmem_sim.topics import (
    PREFIX,
    decode_query,
    decode_topic,
    encode_query,
    encode_topic,
    encode_topics,
)

PROPERTY = settings(max_examples=200, deadline=None, derandomize=True, database=None)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TOPICS = st.integers(2, 64).flatmap(lambda n: arrays(np.float64, n, elements=FINITE))
TABLES = st.tuples(st.integers(0, 5), st.integers(2, 64)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=FINITE)
)


@PROPERTY
@given(topic=TOPICS)
def test_a_direction_comes_back_to_the_last_bit(topic):
    back = decode_topic(encode_topic(topic))
    assert back.dtype == np.float64
    assert back.tobytes() == topic.tobytes()


@PROPERTY
@given(topic=TOPICS)
def test_a_text_is_unharmed_by_what_elfmem_does_before_it_embeds(topic):
    text = encode_topic(topic)
    assert text.strip().lower() == text


@PROPERTY
@given(topics=TABLES)
def test_many_directions_give_the_texts_that_each_gives_alone(topics):
    assert encode_topics(topics) == [encode_topic(topic) for topic in topics]


@PROPERTY
@given(topics=TABLES.filter(len), rng=st.randoms(use_true_random=False))
def test_different_directions_have_different_texts(topics, rng):
    other = topics.copy()
    row, column = rng.randrange(other.shape[0]), rng.randrange(other.shape[1])
    other[row, column] = np.nextafter(other[row, column], 1.0 if other[row, column] < 1 else -1.0)
    assert encode_topics(other)[row] != encode_topics(topics)[row]


def test_a_text_is_the_word_topic_and_big_endian_hexadecimal():
    text = encode_topic(np.array([1.0, -0.5, 0.0]))
    assert text == "topic 3ff0000000000000bfe00000000000000000000000000000"
    assert text == PREFIX + struct.pack(">3d", 1.0, -0.5, 0.0).hex()


def test_a_view_in_any_memory_order_gives_the_same_text():
    table = np.arange(12.0).reshape(3, 4)
    assert encode_topics(table.T) == encode_topics(table.T.copy())
    assert encode_topic(table[1, ::-2]) == encode_topic(np.array([7.0, 5.0]))


def test_a_decoded_direction_may_be_written_to():
    decode_topic(encode_topic(np.ones(2)))[0] = 2.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "topic",
        "topic ",
        "a sentence about nothing",
        "3ff0000000000000",
        "TOPIC 3ff0000000000000",
        " topic 3ff0000000000000",
        "topic 3ff000000000000",
        "topic 3ff00000000000",
        "topic 3ff000000000000g",
        "topic 7ff8000000000000",
        "topic 7ff0000000000000",
    ],
    ids=[
        "nothing",
        "the word alone",
        "no direction",
        "prose",
        "no word",
        "upper case",
        "space before",
        "odd digits",
        "part of a component",
        "no digit",
        "not a number",
        "infinity",
    ],
)
def test_a_text_that_names_no_direction_is_refused(text):
    with pytest.raises(ValueError, match=r"topic text|hexadecimal|buffer size"):
        decode_topic(text)


def test_a_long_text_cut_at_200_characters_is_refused():
    with pytest.raises(ValueError, match="buffer size"):
        decode_topic(encode_topic(np.ones(64))[:200])


@PROPERTY
@given(topic=TOPICS)
def test_a_query_comes_back_and_shares_no_word_with_a_text(topic):
    query = encode_query(topic)
    assert decode_query(query).tobytes() == topic.tobytes()
    assert "topic" not in query.split()
    assert encode_query(topic + 1.0).split()[0] == query.split()[0]


def test_a_text_that_is_no_query_is_refused():
    with pytest.raises(ValueError, match="not a query"):
        decode_query(encode_topic(np.ones(8)))

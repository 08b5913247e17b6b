"""Tests of `elfmem_sim.standins`: the embedding model and the LLM that elfmem is given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elfmem_sim.scenario import Review
from elfmem_sim.standins import (
    EMBEDDING_MODEL,
    EchoProposer,
    TopicAnalyst,
    TopicEmbedding,
    TopicProposer,
    WordedEmbedding,
)
from elfmem_sim.thin import drive
from elfmem_sim.topics import decode_topic, encode_query, encode_topic, encode_topics

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True, database=None)

IDENTITY = ("adr-0004/stable", "review", 7)


def unit(*components):
    vector = np.array(components, float)
    return vector / np.linalg.norm(vector)


OLD = unit(1.0, 0.0, 0.2)
EVIDENCE = np.array([unit(0.0, 1.0, 0.0), unit(0.0, 1.0, 1.0), unit(1.0, 2.0, 0.0)])
TARGET = unit(*EVIDENCE.mean(axis=0))


def propose(review, *, day=29, old=OLD, evidence=EVIDENCE, identity=IDENTITY, drift=0.5):
    """Return the direction that a proposer writes."""
    proposer = TopicProposer(review, identity)
    proposer.day = day
    answer = drive(
        proposer.propose_amendment(
            block_content=encode_topic(old),
            block_summary=None,
            drift_score=drift,
            evidence_summaries=encode_topics(evidence),
        )
    )
    assert answer.keys() == {"proposed_content", "rationale"}
    return decode_topic(answer["proposed_content"])


def fails(review, **keywords):
    try:
        propose(review, **keywords)
    except RuntimeError:
        return True
    return False


# --- TopicEmbedding ---


@PROPERTY
@given(seed=st.integers(0, 2**32), dimension=st.integers(2, 64))
def test_a_text_is_embedded_where_it_points(seed, dimension):
    topic = np.random.default_rng(seed).normal(size=dimension)
    embedding = drive(TopicEmbedding().embed(encode_topic(topic)))
    assert embedding.dtype == np.float32
    assert embedding.tobytes() == topic.astype(np.float32).tobytes()


def test_a_batch_is_embedded_one_by_one():
    texts = encode_topics(EVIDENCE)
    one_by_one = [drive(TopicEmbedding().embed(text)).tobytes() for text in texts]
    batch = drive(TopicEmbedding().embed_batch(texts))
    assert [embedding.tobytes() for embedding in batch] == one_by_one
    assert drive(TopicEmbedding().embed_batch([])) == []


def test_a_text_that_names_no_direction_is_not_embedded():
    with pytest.raises(ValueError, match="not a topic text"):
        drive(TopicEmbedding().embed("be kind"))


def test_the_embedding_model_has_the_name_that_blocks_are_stored_under():
    assert TopicEmbedding().model_name == EMBEDDING_MODEL == "topic"


# --- WordedEmbedding ---


def embedded(text, *, wording=0.7, dimension=64, known=None):
    return drive(WordedEmbedding(dimension, wording, known).embed(text))


@PROPERTY
@given(seed=st.integers(0, 2**32), wording=st.sampled_from([0.0, 0.3, 0.7, 2.0]))
def test_an_embedding_is_a_unit_vector_of_topic_and_wording(seed, wording):
    topic = unit(*np.random.default_rng(seed).normal(size=8))
    embedding = embedded(encode_topic(topic), wording=wording)
    assert embedding.dtype == np.float32
    assert np.linalg.norm(embedding) == pytest.approx(1.0, abs=1e-6)
    assert embedding[:8] * np.sqrt(1.0 + wording**2) == pytest.approx(topic, abs=1e-6)


def test_similarity_to_a_query_orders_texts_as_their_topics_do():
    rng = np.random.default_rng(1)
    topics = np.array([unit(*rng.normal(size=8)) for _ in range(50)])
    query = unit(*rng.normal(size=8))
    asked = embedded(encode_query(query))
    found = np.array([embedded(text) for text in encode_topics(topics)]) @ asked
    assert found == pytest.approx(topics @ query / np.sqrt(1.49), abs=1e-6)


def test_texts_on_one_topic_have_the_mean_cosine_that_the_setting_names():
    rng = np.random.default_rng(2)
    # One topic, all but written alike: only the wording tells them apart.
    texts = encode_topics(OLD + 1e-12 * rng.normal(size=(200, 3)))
    embeddings = np.array([embedded(text) for text in texts])
    cosines = (embeddings @ embeddings.T)[np.triu_indices(200, 1)]
    assert cosines.mean() == pytest.approx(1.0 / 1.49, abs=0.01)
    assert (cosines < 0.90).all()  # elfmem's threshold for a near-duplicate


def test_a_text_is_embedded_alike_every_time_and_in_a_batch():
    model = WordedEmbedding(64, 0.7)
    text = encode_topic(OLD)
    first = drive(model.embed(text)).tobytes()
    assert first == drive(model.embed(text)).tobytes() == embedded(text).tobytes()
    assert [e.tobytes() for e in drive(model.embed_batch([text, text]))] == [first, first]


def test_a_known_text_means_what_it_was_said_to_mean():
    model = WordedEmbedding(64, 0.0, {"be kind.": OLD})
    assert model.read("Be kind. ") is OLD
    assert drive(model.embed("be kind."))[:3] == pytest.approx(OLD, abs=1e-6)
    with pytest.raises(ValueError, match="not a topic text"):
        model.read("be unkind")


# --- TopicAnalyst ---


def test_alignment_is_that_with_the_current_self():
    analyst = TopicAnalyst(Review(), IDENTITY)
    text = encode_topic(OLD)
    for self_topic, expected in ((OLD, 1.0), (-OLD, 0.0), (unit(0.0, 1.0, 0.0), 0.5)):
        analyst.self_topic = self_topic
        analysis = drive(analyst.process_block(text, ""))
        assert analysis.alignment_score == pytest.approx(expected, abs=1e-15)
        assert 0.0 <= analysis.alignment_score <= 1.0
        assert (analysis.summary, analysis.tags) == (text, [])


def test_no_text_contradicts_another():
    texts = encode_topics(EVIDENCE)
    assert drive(TopicAnalyst(Review(), IDENTITY).detect_contradiction(*texts[:2])) == 0.0


def test_an_analyst_proposes_as_a_proposer_does_in_texts_that_it_can_read():
    known = {"be kind": OLD}
    read = WordedEmbedding(64, 0.7, known).read
    answer = drive(
        TopicAnalyst(Review(proposer_move=0.3), IDENTITY, read).propose_amendment(
            block_content="Be kind",
            block_summary=None,
            drift_score=0.5,
            evidence_summaries=encode_topics(EVIDENCE),
        )
    )
    assert decode_topic(answer["proposed_content"]) == pytest.approx(
        propose(Review(proposer_move=0.3)), abs=1e-15
    )


# --- TopicProposer ---


def test_a_full_move_writes_the_mean_of_the_evidence():
    assert propose(Review(proposer_move=1.0)) == pytest.approx(TARGET, abs=1e-15)


def test_no_move_writes_the_old_direction():
    assert propose(Review(proposer_move=0.0)) == pytest.approx(OLD, abs=1e-15)


def test_a_partial_move_lies_on_the_chord_between_old_and_target():
    moved = propose(Review(proposer_move=0.3))
    assert moved == pytest.approx(unit(*(0.7 * OLD + 0.3 * TARGET)), abs=1e-15)


def test_the_length_of_the_evidence_mean_does_not_weigh_in():
    # Evidence that disagrees has a short mean; the target is its direction all the same.
    scattered = np.array([unit(1.0, 1.0, 0.0), unit(-0.9, 1.0, 0.0)])
    expected = unit(*(0.5 * OLD + 0.5 * unit(*scattered.mean(axis=0))))
    written = propose(Review(proposer_move=0.5), evidence=scattered)
    assert written == pytest.approx(expected, abs=1e-15)


@PROPERTY
@given(
    seed=st.integers(0, 2**32),
    dimension=st.integers(2, 64),
    move=st.floats(0.0, 1.0),
    noise=st.sampled_from([0.0, 0.01, 0.5]),
)
def test_a_proposal_is_a_unit_vector(seed, dimension, move, noise):
    rng = np.random.default_rng(seed)
    old, *evidence = (unit(*rng.normal(size=dimension)) for _ in range(6))
    written = propose(
        Review(proposer_move=move, proposer_noise=noise), old=old, evidence=np.array(evidence)
    )
    assert written.shape == (dimension,)
    assert np.linalg.norm(written) == pytest.approx(1.0, abs=1e-12)


def test_the_rationale_names_the_drift():
    answer = drive(
        TopicProposer(Review(), IDENTITY).propose_amendment(
            block_content=encode_topic(OLD),
            block_summary=None,
            drift_score=0.41234,
            evidence_summaries=encode_topics(EVIDENCE),
        )
    )
    assert answer["rationale"] == "drift 0.412"


def test_summary_and_drift_do_not_change_the_text():
    assert propose(Review(proposer_noise=0.2), drift=0.9).tobytes() == (
        propose(Review(proposer_noise=0.2), drift=0.4).tobytes()
    )


def test_noise_is_spread_as_stated():
    dimension, noise = 64, 0.01
    target = unit(*np.ones(dimension))
    offsets = np.concatenate(
        [
            propose(
                Review(proposer_noise=noise),
                day=day,
                old=unit(1.0, *np.zeros(dimension - 1)),
                evidence=target[None],
            )
            - target
            for day in range(50)
        ]
    )
    # 3,200 components: the mean square strays by about 2.5 %, normalising takes off 1 %.
    assert np.sqrt(np.mean(offsets**2)) == pytest.approx(noise, rel=0.08)
    assert abs(offsets.mean()) < 4 * noise / np.sqrt(offsets.size)


def test_noise_scales_with_its_setting_from_one_draw():
    clean = propose(Review())
    small, large = (propose(Review(proposer_noise=s)) for s in (1e-6, 2e-6))
    assert large - clean == pytest.approx(2.0 * (small - clean), rel=1e-4)


def test_noise_is_reproducible():
    assert propose(Review(proposer_noise=0.2)).tobytes() == (
        propose(Review(proposer_noise=0.2)).tobytes()
    )


@pytest.mark.parametrize(
    "other",
    [
        {"day": 30},
        {"identity": ("adr-0004/stable", "review", 8)},
        {"identity": ("adr-0004/slow_drift", "review", 7)},
        {"old": unit(1.0, 0.0, 0.3)},
    ],
    ids=["day", "seed", "scenario", "text"],
)
def test_noise_belongs_to_a_run_a_day_and_a_text(other):
    review = Review(proposer_noise=0.2)
    assert propose(review).tobytes() != propose(review, **other).tobytes()


def test_without_noise_a_proposal_belongs_to_its_texts_alone():
    assert propose(Review()).tobytes() == propose(Review(), day=3, identity=("other",)).tobytes()


def test_failure_and_noise_do_not_shift_each_others_draws():
    noisy = propose(Review(proposer_noise=0.2))
    assert propose(Review(proposer_noise=0.2, proposer_failure_rate=1e-9)).tobytes() == (
        noisy.tobytes()
    )
    for day in range(30):
        plain, noise = (Review(proposer_failure_rate=0.5, proposer_noise=s) for s in (0.0, 0.2))
        assert fails(plain, day=day) == fails(noise, day=day)


def test_a_failure_is_an_error_as_a_provider_would_raise():
    with pytest.raises(RuntimeError, match="the proposer failed"):
        propose(Review(proposer_failure_rate=1.0))


@pytest.mark.parametrize(("rate", "expected"), [(0.0, 0), (1.0, 100)])
def test_certain_failure_and_certain_success(rate, expected):
    review = Review(proposer_failure_rate=rate)
    assert sum(fails(review, day=day) for day in range(100)) == expected


def test_failures_come_at_the_stated_rate():
    failures = sum(fails(Review(proposer_failure_rate=0.2), day=day) for day in range(400))
    # 80 expected, within four standard errors.
    assert abs(failures - 80) < 4 * np.sqrt(400 * 0.2 * 0.8)


def test_a_proposer_that_fails_more_often_fails_wherever_it_failed_before():
    failed = [
        {day for day in range(100) if fails(Review(proposer_failure_rate=rate), day=day)}
        for rate in (0.1, 0.3, 0.6)
    ]
    assert failed[0] < failed[1] < failed[2]


def test_evidence_that_names_no_direction_is_refused():
    with pytest.raises(ValueError, match="not a topic text"):
        drive(
            TopicProposer(Review(), IDENTITY).propose_amendment(
                block_content=encode_topic(OLD),
                block_summary=None,
                drift_score=0.5,
                evidence_summaries=["was kind today"],
            )
        )


# --- EchoProposer ---


def test_the_echo_gives_a_blocks_own_text_back():
    answer = drive(
        EchoProposer().propose_amendment(
            block_content="be kind", block_summary=None, drift_score=0.5, evidence_summaries=[]
        )
    )
    assert answer == {"proposed_content": "be kind", "rationale": ""}

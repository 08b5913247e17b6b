"""Scores against the published formula, and pruned selection against sorting everything."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.arms import ARMS
from elfmem_sim.kernel import score
from elfmem_sim.kernel.state import STRIDE, TOP_K, Agent, allocate
from elfmem_sim.scenario import load_scenario
from elfmem_sim.simulate import prepare

HOURS = 4.0
RULES = prepare(load_scenario("adr-0003/stable"), ARMS["baseline"], 0)[1]
DAYS = 400
ORDINARY_DECAY = 0.010
LAYOUTS = st.tuples(
    st.integers(0, 2**32 - 1),  # seed
    st.sampled_from([2, 3, 8, 64]),  # dimension
    st.integers(1, 12),  # constitutional blocks
    st.integers(0, 400),  # ordinary blocks
)


def random_agent(seed: int, dimension: int, size: int, ordinary: int) -> Agent:
    """Blocks of every age and rank around one self, as after a long life; nothing refreshed."""
    rng = np.random.default_rng(seed)
    count = size + ordinary
    agent = allocate(count + 3, size, dimension, DAYS, 8)
    agent.blocks[0] = count
    topic = rng.normal(size=(count, dimension)) + rng.choice([0.0, 3.0]) * np.eye(dimension)[0]
    agent.topic[:count] = topic / np.linalg.norm(topic, axis=1, keepdims=True)
    agent.alpha[:count] = rng.uniform(0.5, 40.0, count)
    agent.beta[:count] = rng.uniform(0.5, 10.0, count)
    agent.reinforcement[:count] = rng.choice([0, 1, 5, 99, 100, 5000], count)
    agent.edges[:count] = rng.choice([0, 1, 2, 9, 10, 300], count)
    agent.used_step[size:count] = np.sort(rng.integers(0, DAYS + 1, ordinary))
    agent.used_step[:size] = rng.integers(0, DAYS + 1, size)
    agent.decay[:] = rng.choice([1e-5, 1e-3, 1e-2], size)
    agent.recency[:] = np.exp(-ORDINARY_DECAY * HOURS * np.arange(DAYS + 1))
    return agent


def refreshed(agent: Agent, step: int = DAYS) -> Agent:
    for i in range(agent.blocks[0]):
        score.refresh_base(agent, 0.0, i)
    score.refresh_all(agent, RULES, step)
    return agent


def published_standing(agent: Agent, step: int) -> np.ndarray:
    """The ATTENTION score of ADR 0003 less its similarity term, all blocks at once."""
    live = slice(0, int(agent.blocks[0]))
    size = agent.decay.shape[0]
    decay = np.full(live.stop, ORDINARY_DECAY)
    decay[:size] = agent.decay
    rec = np.exp(-decay * HOURS * (step - agent.used_step[live]))
    raw = np.minimum(1.0, agent.edges[live] / 10.0)
    cent = np.where((raw < 0.10) & (rec > 0.70), np.maximum(raw, 0.5 * rec), raw)
    confidence = agent.alpha[live] / (agent.alpha[live] + agent.beta[live])
    reinf = np.minimum(1.0, np.log(1.0 + agent.reinforcement[live]) / np.log(101.0))
    return 0.15 * confidence + 0.25 * rec + 0.15 * cent + 0.10 * reinf


def probe(agent: Agent, seed: int = 0) -> np.ndarray:
    query = np.random.default_rng(seed).normal(size=agent.topic.shape[1])
    return query / np.linalg.norm(query)


def answer(agent: Agent, query: np.ndarray, *, constitution: bool = True, hint=(-1,) * TOP_K):
    scores, indices = np.empty(TOP_K), np.array(hint)
    score.attention(agent, query, float(constitution), np.empty(STRIDE), scores, indices)
    return scores, indices


def brute_force(agent: Agent, query: np.ndarray, *, constitution: bool):
    count, size = int(agent.blocks[0]), agent.decay.shape[0]
    scores = 0.35 * (agent.topic[:count] @ query + 1.0) / 2.0 + agent.standing[:count]
    if not constitution:
        scores[:size] = -np.inf
    order = np.argsort(-scores, kind="stable")[:TOP_K]
    order = order[np.isfinite(scores[order])]
    missing = TOP_K - len(order)
    return (
        np.append(scores[order], [-np.inf] * missing),
        np.append(order, [-1] * missing).astype(np.int64),
    )


def bare_agent(standing: list[float], cosine: list[float], size: int = 1) -> Agent:
    """Blocks with given standings and given cosines to the first axis."""
    agent = allocate(len(standing), size, 2, 1, 8)
    agent.blocks[0] = len(standing)
    agent.topic[: len(cosine), 0] = cosine
    agent.topic[:, 1] = np.sqrt(1.0 - agent.topic[:, 0] ** 2)
    agent.standing[: len(standing)] = standing
    return agent


# Selection.


@given(LAYOUTS, st.booleans())
def test_attention_finds_what_sorting_every_block_finds(layout, constitution):
    agent = refreshed(random_agent(*layout))
    for number in range(5):
        query = probe(agent, number)
        scores, indices = answer(agent, query, constitution=constitution)
        want_scores, want_indices = brute_force(agent, query, constitution=constitution)
        assert indices.tolist() == want_indices.tolist()
        np.testing.assert_allclose(scores, want_scores, rtol=0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.1, 0.35, 1.0]), st.booleans())
def test_attention_finds_the_best_whatever_the_order_of_standings(seed, spread, constitution):
    rng = np.random.default_rng(seed)
    agent = random_agent(seed, 8, 10, 300)
    agent.standing[:310] = rng.uniform(0.0, spread, 310)
    query = probe(agent, seed)
    got = answer(agent, query, constitution=constitution)[1]
    assert got.tolist() == brute_force(agent, query, constitution=constitution)[1].tolist()


@pytest.mark.parametrize("position", [0, 63, 64, 127, 128, 200])
def test_attention_finds_a_perfect_match_that_only_just_reaches(position):
    # All others stand .35 higher and point away, so the match wins by a hair.
    standing, cosine = [0.60] * 201, [-1.0] * 201
    standing[position], cosine[position] = 0.25 + 1e-12, 1.0
    agent = bare_agent(standing, cosine)
    assert answer(agent, np.array([1.0, 0.0]))[1][0] == position


def test_attention_leaves_out_a_perfect_match_that_just_fails_to_reach():
    standing, cosine = [0.60] * 201, [-1.0] * 201
    standing[3], cosine[3] = 0.25 - 1e-12, 1.0
    agent = bare_agent(standing, cosine)
    assert 3 not in answer(agent, np.array([1.0, 0.0]))[1]


@pytest.mark.parametrize("constitution", [True, False])
@pytest.mark.parametrize(("size", "ordinary"), [(1, 0), (3, 1), (1, 3), (10, 0), (2, 4), (2, 5)])
def test_attention_with_few_blocks_leaves_places_empty(size, ordinary, constitution):
    agent = refreshed(random_agent(1, 8, size, ordinary))
    scores, indices = answer(agent, probe(agent), constitution=constitution)
    found = min(TOP_K, ordinary + size * constitution)
    assert np.count_nonzero(indices >= 0) == found
    assert (indices[found:] == -1).all()
    assert np.isneginf(scores[found:]).all()


@given(LAYOUTS)
def test_attention_without_the_constitution_returns_none_of_it(layout):
    agent = refreshed(random_agent(*layout))
    agent.standing[: agent.decay.shape[0]] = 100.0
    indices = answer(agent, probe(agent), constitution=False)[1]
    assert not ((indices >= 0) & (indices < agent.decay.shape[0])).any()


def test_attention_does_not_see_rows_that_hold_no_block_yet():
    agent = refreshed(random_agent(1, 8, 2, 10))
    agent.standing[12:] = 100.0
    assert answer(agent, probe(agent))[1].max() < 12


@given(LAYOUTS, st.booleans(), st.data())
def test_attention_finds_the_same_from_whatever_rows_it_starts(layout, constitution, data):
    agent = refreshed(random_agent(*layout))
    row = st.integers(0, int(agent.blocks[0]) - 1)
    known = data.draw(st.lists(row, unique=True, max_size=TOP_K))
    hint = [*known, *[-1] * (TOP_K - len(known))]
    got = answer(agent, probe(agent), constitution=constitution, hint=hint)
    want = answer(agent, probe(agent), constitution=constitution)
    assert [part.tolist() for part in got] == [part.tolist() for part in want]


def test_attention_finds_what_it_starts_from_if_that_is_best():
    agent = refreshed(random_agent(1, 8, 10, 300))
    scores, indices = answer(agent, probe(agent))
    again = answer(agent, probe(agent), hint=indices)
    assert (again[0].tolist(), again[1].tolist()) == (scores.tolist(), indices.tolist())


def nearest(agent: Agent, query: np.ndarray, hint=(-1,) * TOP_K):
    scores, indices = np.empty(TOP_K), np.array(hint)
    score.nearest(agent, query, np.empty(STRIDE), scores, indices)
    return scores, indices


@given(LAYOUTS)
def test_nearest_finds_what_sorting_every_cosine_finds(layout):
    agent = random_agent(*layout)
    query, count = probe(agent), int(agent.blocks[0])
    cosine = agent.topic[:count] @ query
    scores, indices = nearest(agent, query)
    found = min(TOP_K, count)
    assert indices[:found].tolist() == np.argsort(-cosine, kind="stable")[:found].tolist()
    assert (indices[found:] == -1).all()
    np.testing.assert_allclose(scores[:found], -np.sort(-cosine)[:found], rtol=0, atol=1e-12)
    assert np.isneginf(scores[found:]).all()


@given(LAYOUTS, st.data())
def test_nearest_finds_the_same_from_whatever_rows_it_starts(layout, data):
    agent = random_agent(*layout)
    row = st.integers(0, int(agent.blocks[0]) - 1)
    known = data.draw(st.lists(row, unique=True, max_size=TOP_K))
    hint = [*known, *[-1] * (TOP_K - len(known))]
    got, want = nearest(agent, probe(agent), hint), nearest(agent, probe(agent))
    assert [part.tolist() for part in got] == [part.tolist() for part in want]


@pytest.mark.parametrize("capacity", [0, 1, 63, 64, 65, 2000])
def test_every_block_lies_in_a_whole_stride(capacity):
    agent = allocate(capacity, 0, 3, 1, 8)
    assert capacity <= len(agent.standing) < capacity + STRIDE
    assert len(agent.topic) % STRIDE == len(agent.standing) % STRIDE == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 19))
def test_similarities_of_a_stride_have_the_bits_of_one_after_the_other(seed, dimension):
    rng = np.random.default_rng(seed)
    columns, query = rng.normal(size=(dimension, 3 * STRIDE)), rng.normal(size=dimension)
    out, rows = np.empty(STRIDE), np.ascontiguousarray(columns.T)
    score.similarities(columns, query, STRIDE, out)
    single = [score.similarity(row, query) for row in rows[STRIDE : 2 * STRIDE]]
    assert out.tolist() == single


def test_attention_changes_no_block():
    agent = refreshed(random_agent(1, 8, 10, 300))
    before = [np.copy(array) for array in agent[:-2]]
    answer(agent, probe(agent))
    assert all(np.array_equal(was, now) for was, now in zip(before, agent[:-2], strict=True))


@given(st.lists(st.floats(-1e6, 1e6), unique=True, max_size=40), st.integers(1, 8))
def test_insert_top_keeps_the_largest_in_descending_order(values, places):
    scores, indices = np.empty(places), np.empty(places, np.int64)
    score.clear_top(scores, indices, -np.inf)
    for i, value in enumerate(values):
        score.insert_top(value, i, scores, indices)
    order = sorted(range(len(values)), key=lambda i: -values[i])[:places]
    assert indices.tolist() == order + [-1] * (places - len(order))
    assert scores[: len(order)].tolist() == [values[i] for i in order]


def test_insert_top_keeps_the_earlier_of_two_equals():
    scores, indices = np.empty(1), np.empty(1, np.int64)
    score.clear_top(scores, indices, -np.inf)
    score.insert_top(0.5, 7, scores, indices)
    score.insert_top(0.5, 8, scores, indices)
    assert indices.tolist() == [7]


# Standing.


@given(LAYOUTS, st.integers(0, 40))
def test_standing_is_the_published_score_less_similarity(layout, later):
    agent = random_agent(*layout)
    agent.used_step[:] = np.minimum(agent.used_step, DAYS - later)
    refreshed(agent, DAYS - later)
    got = agent.standing[: agent.blocks[0]]
    np.testing.assert_allclose(got, published_standing(agent, DAYS - later), rtol=0, atol=1e-12)


def test_largest_standing_and_similarity_add_up_to_one():
    agent = random_agent(1, 8, 1, 1)
    agent.alpha[:], agent.beta[:] = 1e18, 1e-6
    agent.edges[:], agent.reinforcement[:], agent.used_step[:] = 10, 100, DAYS
    refreshed(agent)
    assert agent.standing[:2].tolist() == pytest.approx([0.65, 0.65], abs=1e-12)
    most = score.W_SIMILARITY + 0.65
    assert most == pytest.approx(1.0)


def floored(edges: float, recent: float) -> float:
    """Centrality's share of the standing of an ordinary block with these edges and recency."""
    agent = random_agent(1, 8, 1, 1)
    agent.edges[1], agent.used_step[1], agent.recency[2] = edges, DAYS - 2, recent
    score.refresh_base(agent, 0.0, 1)
    score.refresh_standing(agent, HOURS, True, 1, DAYS)
    return float(agent.standing[1] - agent.base[1] - 0.25 * recent) / 0.15


@pytest.mark.parametrize(
    ("edges", "recent", "centrality"),
    [
        (0, 1.0, 0.5),
        (0, 0.9, 0.45),
        (0, math.nextafter(0.70, 1.0), 0.35),
        (0, 0.70, 0.0),
        (0, math.nextafter(0.70, 0.0), 0.0),
        (math.nextafter(1.0, 0.0), 0.9, 0.45),
        (1, 0.9, 0.1),
        (1, 0.2, 0.1),
        (9, 0.9, 0.9),
        (10, 0.2, 1.0),
        (11, 0.2, 1.0),
    ],
)
def test_cold_start_floor_lifts_only_fresh_blocks_that_nobody_linked(edges, recent, centrality):
    assert floored(edges, recent) == pytest.approx(centrality, abs=1e-12)


def test_constitutional_blocks_have_the_cold_start_floor_too():
    agent = random_agent(1, 8, 1, 0)
    agent.edges[0], agent.used_step[0] = 0, DAYS
    refreshed(agent)
    assert agent.standing[0] - agent.base[0] == pytest.approx(0.25 + 0.15 * 0.5)


@pytest.mark.parametrize(
    ("reinforcement", "term"), [(0, 0.0), (9, math.log(10) / math.log(101)), (100, 1.0), (101, 1.0)]
)
def test_reinforcement_counts_on_a_log_scale_up_to_a_hundred(reinforcement, term):
    assert score.reinforcement_term(float(reinforcement)) == pytest.approx(term, abs=1e-15)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 8, 65]))
def test_similarity_is_the_dot_product(seed, dimension):
    a, b = np.random.default_rng(seed).normal(size=(2, dimension))
    assert score.similarity(a, b) == pytest.approx(float(a @ b), rel=1e-12, abs=1e-12)


def test_refreshing_one_block_moves_no_other():
    agent = refreshed(random_agent(1, 8, 10, 50))
    before = agent.standing.copy()
    agent.edges[20] += 1.0
    agent.used_step[20] = DAYS
    score.refresh_standing(agent, HOURS, True, 20, DAYS)
    assert np.flatnonzero(agent.standing != before).tolist() == [20]

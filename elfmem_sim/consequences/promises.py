"""What ADR 0004 promises of the Python API."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from elfmem_sim.consequences.bench import (
    AGE_DAYS,
    HOURS,
    Analyst,
    Bench,
    ProviderError,
    Trial,
    audit,
    blocks,
    change,
    changed,
    consequence,
    constitution,
    drain,
    memories,
    principles,
    rows_of,
    tables,
)
from elfmem_sim.production.system import move_back, set_active_hours
from elfmem_sim.review import CONSTITUTIONAL_TAG
from elfmem_sim.topics import decode_topic, encode_topic

_COOLDOWN_HOURS = 2160
_TRIES = 100

# Columns that an accept or a revert is documented to change.
_AMENDED = {"content", "embedding", "embedding_model", "summary", "last_scored_at"}


@consequence(
    "review.read_only",
    "review_constitutional() is read-only: it surfaces drift, the block is never touched.",
    "api",
)
async def read_only(bench: Bench, trial: Trial) -> str:
    """Compare every table around reviews that propose, fail, find too little, and find nothing."""
    file = bench.state()
    failing = Analyst(fails_on=tuple(principles()))
    for llm, review in (
        (Analyst(), {}),
        (failing, {}),
        (Analyst(), {"min_recent_reinforced_blocks": 1000}),
        (Analyst(), {"drift_threshold": 1.0}),
    ):
        async with bench.session(file, llm, review) as system:
            before = tables(file)
            result = await system.review_constitutional()
            trial.expect(
                not changed(before, tables(file)),
                f"rows of {', '.join(changed(before, tables(file)))} differ",
            )
            trial.expect(
                bool(result.proposals) == (llm is not failing and not review),
                f"{len(result.proposals)} proposals",
            )
    return "every row of every table before and after reviews with and without proposals"


@consequence(
    "accept.explicit",
    "Nothing is applied without an explicit accept: no consolidation, curation, dream or review "
    "hook does it.",
    "api",
)
async def explicit(bench: Bench, trial: Trial) -> str:
    """Leave proposals lying, and do everything else that an agent does."""
    file = bench.state()
    texts = constitution(file)
    async with bench.session(file, Analyst()) as system:

        async def curate() -> None:
            await system.curate()

        async def dream() -> None:
            await system.learn(encode_topic(-decode_topic(memories()[0])))
            await drain(system)

        async def rescore() -> None:
            await system.dream(rescore=True)

        async def answer() -> None:
            for name in ("self", "attention", "task"):
                await system.frame(name, None if name == "self" else memories()[0])

        async def learn_of_outcomes() -> None:
            await system.outcome(list(blocks(file)), 0.0, source="check")

        for step in (dream, rescore, curate, answer, learn_of_outcomes):
            proposals = (await system.review_constitutional()).proposals
            trial.expect(bool(proposals), "no proposal was left lying")
            await step()
            now = constitution(file)
            amended = [block for block in now if now[block] != texts.get(block)]
            trial.expect(not amended and not audit(file), f"{step.__name__} amended {amended}")
    return "the constitution's texts and the audit table after each of five things an agent does"


@consequence(
    "accept.one_block",
    "An accept is for one block: no other row changes, and of this one only what is documented.",
    "api",
)
async def one_block(bench: Bench, trial: Trial) -> str:
    """Compare all rows around accepts."""
    file = bench.state()
    async with bench.session(file, Analyst()) as system:
        for proposal in (await system.review_constitutional()).proposals:
            before, others = _by_id(file), tables(file)
            await system.accept_amendment(proposal.block_id, proposal.proposed_content)
            touched = set(changed(others, tables(file)))
            trial.expect(touched == {"blocks", "block_amendments"}, f"{sorted(touched)} changed")
            for block, row in _by_id(file).items():
                allowed = _AMENDED if block == proposal.block_id else set()
                differing = {key for key in row if row[key] != before[block][key]}
                trial.expect(differing <= allowed, f"{sorted(differing - allowed)} changed")
            trial.expect(
                constitution(file)[proposal.block_id] == proposal.proposed_content,
                "the block does not say what was accepted",
            )
    return "every column of every block before and after each accept"


def _by_id(file: Path) -> dict[str, dict[str, Any]]:
    with closing(sqlite3.connect(file)) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM blocks").fetchall()
    return {row["id"]: dict(row) for row in rows}


@consequence(
    "accept.audited",
    "Every applied amendment is audited: the text before and after, drift score, rationale, and "
    "who decided.",
    "api",
)
async def audited(bench: Bench, trial: Trial) -> str:
    """Compare the audit rows with what was accepted."""
    file = bench.state()
    async with bench.session(file, Analyst()) as system:
        proposals = (await system.review_constitutional()).proposals
        for proposal, acceptor in zip(proposals, ("agent", "user", "system"), strict=False):
            await system.accept_amendment(
                proposal.block_id,
                proposal.proposed_content,
                proposal.rationale,
                drift_score=proposal.drift_score,
                acceptor=acceptor,
            )
            expected = {
                "block_id": proposal.block_id,
                "pre_content": proposal.original_content,
                "post_content": proposal.proposed_content,
                "drift_score": proposal.drift_score,
                "rationale": proposal.rationale,
                "acceptor": acceptor,
                "reverted_at": None,
            }
            last = (audit(file) or [{}])[-1]
            trial.expect(
                expected == {key: last.get(key) for key in expected},
                f"the audit row differs in {_differing(expected, last)}",
            )
    trial.expect(len(audit(file)) == 3, f"{len(audit(file))} audit rows after 3 accepts")
    return "one audit row per accept with the proposal it came from"


def _differing(expected: dict[str, Any], found: dict[str, Any]) -> str:
    return ", ".join(key for key in expected if expected[key] != found.get(key, "nothing"))


@consequence(
    "frame.invalidated",
    "The SELF frame is invalidated on every accept and revert: context reflects the new content "
    "immediately.",
    "api",
)
async def invalidated(bench: Bench, trial: Trial) -> str:
    """Ask for SELF frames that elfmem has cached, right after an accept and a revert."""
    file = bench.state()
    async with bench.session(file, Analyst()) as system:
        for block in (await system.frame("self")).blocks[:3]:
            old, new = block.content, encode_topic(-decode_topic(block.content))
            warm = (await system.frame("self")).cached
            result = await system.accept_amendment(block.id, new)
            text = (await system.frame("self")).text
            trial.expect(new in text and old not in text, "accept left the old text in SELF")
            warm = (await system.frame("self")).cached and warm
            await system.revert_amendment(result.amendment_id)
            text = (await system.frame("self")).text
            trial.expect(old in text and new not in text, "revert left the new text in SELF")
            if not warm:
                trial.undecided = "elfmem did not cache the SELF frame, so nothing could be stale"
    return "the text of SELF right after accept and revert, with the frame cached before"


@consequence(
    "revert.one_step",
    "revert_amendment() is a one-step undo: reverted amendments are flagged with reverted_at "
    "rather than deleted.",
    "api",
)
async def one_step(bench: Bench, trial: Trial) -> str:
    """Amend one block twice and walk back, newest first."""
    file = bench.state()
    block, original = next(iter(constitution(file).items()))
    texts = [original, *principles()[-2:]]
    async with bench.session(file, Analyst()) as system:
        ids = [(await system.accept_amendment(block, text)).amendment_id for text in texts[1:]]
        for back in (1, 2):
            before = audit(file)
            await system.revert_amendment(ids[-back])
            rows = audit(file)
            trial.expect(
                constitution(file)[block] == texts[-1 - back],
                f"the block does not say what it said before amendment {3 - back}",
            )
            flagged = [row["id"] for row in rows if row["reverted_at"] is not None]
            trial.expect(sorted(flagged) == sorted(ids[-back:]), f"flagged are {len(flagged)}")
            kept = [{**row, "reverted_at": None} for row in rows]
            expected = [{**row, "reverted_at": None} for row in before]
            trial.expect(kept == expected, "the audit rows are not all kept as they were")
    return "text, flags and audit rows after each of two reverts, newest first"


@consequence("revert.once", "An amendment is reverted once: a second revert raises.", "api")
async def once(bench: Bench, trial: Trial) -> str:
    """Revert twice, then what does not exist."""
    from elfmem.exceptions import AmendmentAlreadyReverted, AmendmentNotFound

    file = bench.state()
    block = next(iter(constitution(file)))
    async with bench.session(file, Analyst()) as system:
        result = await system.accept_amendment(block, principles()[-1])
        await system.revert_amendment(result.amendment_id)
        before = tables(file)
        for number, error in ((result.amendment_id, AmendmentAlreadyReverted),
                              (result.amendment_id + 1, AmendmentNotFound)):  # fmt: skip
            try:
                await system.revert_amendment(number)
                trial.expect(False, f"no {error.__name__}")
            except error:
                trial.expect(True, "")
            trial.expect(not changed(before, tables(file)), "a refused revert changed rows")
    return "the exception, and every table around the refused revert"


@consequence(
    "list.complete",
    "list_amendments() returns the whole history, reverted amendments included, newest first.",
    "api",
)
async def complete(bench: Bench, trial: Trial) -> str:
    """Hold the list against the audit table."""
    file = bench.state()
    texts = principles()
    async with bench.session(file, Analyst()) as system:
        for i, block in enumerate(list(constitution(file))[:6]):
            for text in texts[-2:]:
                result = await system.accept_amendment(block, text)
            if i % 2:
                await system.revert_amendment(result.amendment_id)
        rows = audit(file)
        listed = await system.list_amendments(limit=1000)
        _compare(trial, rows, listed)
        for block in {row["block_id"] for row in rows}:
            own = [row for row in rows if row["block_id"] == block]
            _compare(trial, own, await system.list_amendments(block_id=block))
        newest = await system.list_amendments(limit=3)
        trial.expect([a.id for a in newest] == [r["id"] for r in rows[:-4:-1]], "not the newest 3")
        trial.expect(await system.list_amendments(block_id="none") == [], "a list of no block")
    return "the list, whole and by block, with the audit table"


def _compare(trial: Trial, rows: Iterable[dict[str, Any]], listed: Iterable[Any]) -> None:
    keys = ("id", "block_id", "pre_content", "post_content", "drift_score", "acceptor")
    expected = [(*(row[key] for key in keys), row["reverted_at"] is None) for row in rows]
    found = [(*(getattr(a, key) for key in keys), a.reverted_at is None) for a in listed]
    trial.expect(found == expected[::-1], f"{len(found)} listed of {len(expected)}, or in disorder")


@consequence(
    "cooldown.boundary",
    "A 90-day cooldown per block: no proposal while an unreverted amendment is still inside it.",
    "api",
)
async def cooldown(bench: Bench, trial: Trial) -> str:
    """Amend a block and ask around the end of its cooldown, to the second."""
    file = bench.state()
    async with bench.session(file, Analyst()) as system:
        block = (await system.review_constitutional()).proposals[0].block_id
        # The new text has drifted as far as any: but for the cooldown it would be proposed again.
        amendment = (await system.accept_amendment(block, principles()[-2])).amendment_id

        async def proposed(seconds_to_go: int) -> bool | None:
            """Ask at an exact second, and until the clock stood still while elfmem answered."""
            for _ in range(_TRIES):
                now = _second(file)
                change(
                    file,
                    "UPDATE block_amendments SET timestamp = datetime(?, ?, ?) WHERE id = ?",
                    now,
                    f"-{_COOLDOWN_HOURS} hours",
                    f"{seconds_to_go:+d} seconds",
                    amendment,
                )
                found = (await system.review_constitutional(max_proposals=100)).proposals
                if _second(file) == now:
                    return block in [proposal.block_id for proposal in found]
            return None

        for seconds, due in ((86400, False), (60, False), (1, False), (0, True), (-1, True)):
            seen = await proposed(seconds)
            if seen is None:
                trial.undecided = "the machine is too busy to answer within one second"
                continue
            trial.expect(seen == due, f"proposed: {seen}, {seconds} s before the cooldown's end")
        await system.revert_amendment(amendment)
        trial.expect(bool(await proposed(86400)), "a reverted amendment still cools down")
    return "whether the block is proposed a day, a minute, a second before 90 days, then, and after"


def _second(file: Path) -> str:
    (row,) = rows_of(file, "SELECT datetime('now')")
    return str(row[0])


@consequence(
    "proposer.failures",
    "A failing proposer aborts nothing: the rest is proposed, failures are counted.",
    "api",
)
async def failures(bench: Bench, trial: Trial) -> str:
    """Let some calls fail, and all."""
    file = bench.state()
    async with bench.session(file, Analyst()) as system:
        whole = (await system.review_constitutional()).proposals
    texts = [proposal.original_content for proposal in whole]
    for fails_on in (texts[:1], texts[1::2], texts[-1:], texts):
        llm = Analyst(fails_on=tuple(fails_on))
        async with bench.session(file, llm) as system:
            try:
                result = await system.review_constitutional()
            except ProviderError:
                trial.expect(False, "the failure ended the review")
                continue
            expected = [p for p in whole if p.original_content not in fails_on]
            trial.expect(result.proposals == expected, f"{len(result.proposals)} proposals")
            trial.expect(
                result.failed_proposal_count == len(fails_on),
                f"{result.failed_proposal_count} failures counted of {len(fails_on)}",
            )
            trial.expect(llm.asked == texts, "not every block was asked for")
    return f"proposals and counts with {len(texts)} blocks eligible, some or all calls failing"


@consequence(
    "defaults.work",
    "Defaults are calibrated against the simulation; no YAML changes are required to work.",
    "api",
    finding="fresh-instance-never-proposes",
)
async def defaults(bench: Bench, trial: Trial) -> str:
    """Let an agent live that never rescores, with outcomes on whatever a frame returned."""
    file = bench.state().with_name("fresh.db")
    async with bench.session(file, Analyst()) as system:
        for text in principles():
            await system.learn(text, tags=[CONSTITUTIONAL_TAG])
        for text in memories():
            await system.learn(text)
        await drain(system)
        for _ in range(3):
            frame = await system.frame("self")
            await system.outcome([block.id for block in frame.blocks], 1.0, source="check")
            await system.outcome(list(blocks(file)), 1.0, source="check")
    with closing(sqlite3.connect(file)) as database:
        move_back(database, AGE_DAYS)
        set_active_hours(database, HOURS)
    async with bench.session(file, Analyst()) as system:
        result = await system.review_constitutional()
    evidence = rows_of(
        file,
        "SELECT max(success_count + failure_count) FROM blocks JOIN block_tags ON block_id = id "
        "WHERE tag = ?",
        CONSTITUTIONAL_TAG,
    )[0][0]
    trial.expect(
        bool(result.proposals),
        f"no proposal, as no principle's evidence is above {evidence:.1f} and 2 is required",
    )
    return (
        f"proposals after {AGE_DAYS:.0f} days, 3 outcomes on every block and no rescore, with "
        "drifted principles and enough history"
    )

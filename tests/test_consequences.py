"""Tests of `elfmem_sim.consequences`: every check on elfmem, and on a product that breaks it."""

import dataclasses
import json
import runpy
import sqlite3
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from elfmem.api import MemorySystem
from elfmem.exceptions import AmendmentAlreadyReverted

from elfmem_sim import cli, topics
from elfmem_sim.consequences import stub, surfaces, trial
from elfmem_sim.consequences.bench import (
    CHECKS,
    Bench,
    Product,
    ProviderError,
    change,
    constitution,
    principles,
    rows_of,
)
from elfmem_sim.consequences.migration import as_version_4
from elfmem_sim.errors import UserError

RELEASE = tuple(map(int, version("elfmem").split(".")[:2]))
FINDINGS = Path(__file__).parent.parent / "results" / "findings"
SCRIPTS = sorted(FINDINGS.glob("*.py"))

API = [name for name, entry in CHECKS.items() if entry.surface == "api"]
BROKEN = {"surface.window", *(["defaults.work"] if RELEASE >= (0, 20) else [])}
"""What elfmem itself does not keep; each has its finding."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("bench"))


def judged(bench, name):
    return bench.judge(CHECKS[name])


# On elfmem.


@pytest.mark.parametrize("name", [*API, "surface.cli", "cli.interactive", "cli.decisions"])
def test_a_consequence_has_its_verdict_on_elfmem(bench, name):
    found = judged(bench, name)
    assert found.verdict == ("BROKEN" if name in BROKEN else "HELD"), found.evidence
    assert found.occasions > 0


@pytest.mark.parametrize(
    "name",
    ["surface.mcp_memory", "surface.mcp_stdio", "mcp.decisions", "surface.window"],
)
def test_a_consequence_has_its_verdict_on_elfmems_tools(bench, name):
    found = judged(bench, name)
    assert found.verdict == ("BROKEN" if name in BROKEN else "HELD"), found.evidence


def test_an_accept_on_the_command_line_does_not_reach_a_running_agent(bench):
    found = judged(bench, "surface.self_frame")
    assert (found.verdict, found.finding) == ("BROKEN", "accept-elsewhere-leaves-self-stale")


# On products that break one promise each.


class Wrong(MemorySystem):
    @property
    def file(self):
        return Path(self._engine.url.database)


class ReviewWrites(Wrong):
    async def review_constitutional(self, **options):
        change(self.file, "UPDATE blocks SET token_count = token_count + 1")
        return await super().review_constitutional(**options)


class CurateAmends(Wrong):
    async def curate(self):
        proposal = (await self.review_constitutional()).proposals[0]
        await self.accept_amendment(proposal.block_id, proposal.proposed_content)
        return await super().curate()


class AcceptReinforces(Wrong):
    async def accept_amendment(self, *args, **options):
        result = await super().accept_amendment(*args, **options)
        change(self.file, "UPDATE blocks SET reinforcement_count = reinforcement_count + 1")
        return result


class AuditForgetsTheOldText(Wrong):
    async def accept_amendment(self, *args, **options):
        result = await super().accept_amendment(*args, **options)
        change(self.file, "UPDATE block_amendments SET pre_content = post_content")
        return result


class FrameGoesStale(Wrong):
    async def accept_amendment(self, *args, **options):
        kept = dict(self._frame_cache._cache)
        result = await super().accept_amendment(*args, **options)
        self._frame_cache._cache.update(kept)
        return result


class RevertDeletes(Wrong):
    async def revert_amendment(self, amendment_id):
        result = await super().revert_amendment(amendment_id)
        change(self.file, "DELETE FROM block_amendments WHERE id = ?", amendment_id)
        return result


class RevertsAgain(Wrong):
    async def revert_amendment(self, amendment_id):
        try:
            return await super().revert_amendment(amendment_id)
        except AmendmentAlreadyReverted:
            return None


class ListHidesReverted(Wrong):
    async def list_amendments(self, **options):
        found = await super().list_amendments(**options)
        return [amendment for amendment in found if amendment.reverted_at is None]


class CooldownEndsASecondEarly(Wrong):
    async def review_constitutional(self, **options):
        return await super().review_constitutional(cooldown_hours=2160.0 - 1.0 / 3600.0, **options)


class CooldownEndsASecondLate(Wrong):
    async def review_constitutional(self, **options):
        return await super().review_constitutional(cooldown_hours=2160.0 + 1.0 / 3600.0, **options)


class FailureAborts(Wrong):
    async def review_constitutional(self, **options):
        result = await super().review_constitutional(**options)
        if result.failed_proposal_count:
            raise ProviderError
        return result


class FailuresUncounted(Wrong):
    async def review_constitutional(self, **options):
        result = await super().review_constitutional(**options)
        return dataclasses.replace(result, failed_proposal_count=0)


class AsksForMoreEvidence(Wrong):
    async def review_constitutional(self, **options):
        return await super().review_constitutional(min_block_evidence=100.0, **options)


class MigrationResets(Wrong):
    @classmethod
    async def from_config(cls, db_path, config=None):
        found = await super().from_config(db_path, config)
        change(Path(db_path), "UPDATE blocks SET confidence = confidence / 2")
        return found


class BehavesByTheTable(Wrong):
    async def frame(self, name, query=None, **options):
        async with self._engine.connect() as connection:
            rows = await connection.execute(_text("SELECT name FROM sqlite_master"))
            there = "block_amendments" in {row[0] for row in rows}
        if not there:
            options["top_k"] = 1
        return await super().frame(name, query, **options)


def _text(statement):
    from sqlalchemy import text

    return text(statement)


@pytest.mark.parametrize(
    ("name", "double"),
    [
        ("review.read_only", ReviewWrites),
        ("accept.explicit", CurateAmends),
        ("accept.one_block", AcceptReinforces),
        ("accept.audited", AuditForgetsTheOldText),
        ("frame.invalidated", FrameGoesStale),
        ("revert.one_step", RevertDeletes),
        ("revert.once", RevertsAgain),
        ("list.complete", ListHidesReverted),
        ("cooldown.boundary", CooldownEndsASecondEarly),
        ("cooldown.boundary", CooldownEndsASecondLate),
        ("proposer.failures", FailureAborts),
        ("proposer.failures", FailuresUncounted),
        ("defaults.work", AsksForMoreEvidence),
        ("migration.idempotent", MigrationResets),
        ("migration.unchanged", BehavesByTheTable),
    ],
)
def test_a_product_that_breaks_a_promise_is_found_out(bench, name, double):
    found = judged(bench.on(Product(system=double)), name)
    assert found.verdict == "BROKEN"


def test_a_frame_that_is_asked_afresh_reaches_a_running_agent(bench):
    class NeverCached(Wrong):
        async def frame(self, name, query=None, **options):
            self._frame_cache.clear()
            return await super().frame(name, query, **options)

    found = judged(bench.on(Product(system=NeverCached)), "surface.self_frame")
    assert found.verdict == "HELD", found.evidence


FAKE = """
import json, sys
reference = json.load(open({path!r}))
if sys.argv[1:] == ["review"]:  # says what it should, and does nothing
    for _ in reference["proposals"]:
        input("[a]ccept / [q]uit")
else:
    print(json.dumps(reference))
"""


@pytest.fixture
def fake(bench, tmp_path):
    """A command line that has its answers from a file, every drift score a little off."""
    judged(bench, "surface.cli")  # asks for the reference
    answer = json.loads(json.dumps(bench.reference))
    answer["proposals"][0]["drift_score"] += 1e-15
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer))
    return Product(command=(sys.executable, "-c", FAKE.format(path=str(path))))


@pytest.mark.parametrize("name", ["surface.cli", "cli.interactive", "cli.decisions"])
def test_a_wrong_command_line_is_found_out(bench, fake, name):
    assert judged(bench.on(fake), name).verdict == "BROKEN"


def test_a_command_line_that_dies_is_found_out(bench):
    dead = Product(command=(sys.executable, "-c", "raise SystemExit('no such command')"))
    found = judged(bench.on(dead), "surface.cli")
    assert "exit code 1: no such command" in found.evidence


SERVER = """
from fastmcp import FastMCP
mcp = FastMCP("wrong")

@mcp.tool()
def elfmem_review_constitutional() -> dict:
    return {"proposals": [], "insufficient_history": True}

@mcp.tool()
def elfmem_accept_amendment(block_id: str, proposed_content: str) -> dict:
    return {"amendment_id": 1}

if __name__ == "__main__":
    mcp.run()
"""


@pytest.mark.parametrize("name", ["surface.mcp_memory", "surface.mcp_stdio", "mcp.decisions"])
def test_a_wrong_server_is_found_out(bench, tmp_path, name):
    (tmp_path / "wrong.py").write_text(SERVER)
    command = (sys.executable, str(tmp_path / "wrong.py"))
    wrong = Product(server="wrong:mcp", command=command, path=str(tmp_path))
    assert judged(bench.on(wrong), name).verdict == "BROKEN"


def test_a_server_that_knows_the_time_keeps_the_window(bench, tmp_path):
    (tmp_path / "right.py").write_text(SERVER)
    said = '{"proposals": [], "insufficient_history": true}'
    command = (sys.executable, "-c", f"print({said!r})")
    right = Product(server="right:mcp", command=command, path=str(tmp_path))
    found = judged(bench.on(right), "surface.window")
    assert found.verdict == "HELD", found.evidence


def test_without_fastmcp_the_tools_cannot_be_judged(bench, monkeypatch):
    monkeypatch.setattr(surfaces, "find_spec", lambda _: None)
    found = judged(bench, "surface.mcp_memory")
    assert (found.verdict, found.occasions) == ("INCONCLUSIVE", 0)
    assert "pip install" in found.evidence


# What the checks rest on.


def test_the_state_has_principles_above_and_below_the_threshold(bench):
    judged(bench, "surface.cli")
    assert 0 < len(bench.reference["proposals"]) < bench.reference["reviewed_count"] == 10


def test_an_environment_leads_nowhere_but_to_its_folder(bench, tmp_path):
    there = surfaces.Visitor(bench, tmp_path / "agent.db", "http://127.0.0.1:9/v1")
    environment = there.environment
    assert environment["HOME"] == str(tmp_path)
    assert environment["ELFMEM_DB"] == str(tmp_path / "agent.db")
    assert "127.0.0.1" in Path(environment["ELFMEM_CONFIG"]).read_text()
    assert not [name for name in environment if "proxy" in name.lower()]


def test_version_4_has_neither_the_table_nor_what_came_later(bench):
    file = bench.state()
    as_version_4(file)
    names = rows_of(file, "SELECT name FROM sqlite_master WHERE name LIKE '%amendments%'")
    with closing(sqlite3.connect(file)) as database:
        columns = {row[1] for row in database.execute("PRAGMA table_info(blocks)")}
    assert names == []
    assert "success_count" in columns
    assert not columns & {"pinned", "superseded_by", "cue", "volatility_class"}


def test_each_state_is_a_copy_of_its_own(bench):
    first, second = bench.state(), bench.state()
    change(first, "UPDATE blocks SET content = ''")
    assert principles()[0] in constitution(second).values()


def test_the_stub_embeds_as_the_stand_in_does():
    text = principles()[0]
    answer = stub.answer("/v1/embeddings", {"model": "topic", "input": [text]})
    expected = topics.decode_topic(text) @ topics.decode_topic(principles()[1])
    assert len(answer["data"][0]["embedding"]) == stub.EMBEDDING_DIMENSION
    other = stub.answer("/v1/embeddings", {"model": "topic", "input": principles()[1]})
    dot = sum(
        a * b
        for a, b in zip(
            answer["data"][0]["embedding"][: stub.DIMENSION],
            other["data"][0]["embedding"][: stub.DIMENSION],
            strict=True,
        )
    )
    assert dot == pytest.approx(expected / (1.0 + stub.WORDING**2), abs=1e-6)


def test_the_stub_refuses_what_it_does_not_serve():
    with pytest.raises(ValueError, match="not served"):
        stub.answer("/v1/models", {})


# The command.


@pytest.fixture
def call(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["elfmem-sim", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code or 0, capsys.readouterr()

    return call


COMMAND = ["verify", "adr-0004", "--tier", "production", "--out", "found"]


def only(monkeypatch, *names):
    monkeypatch.setattr(trial, "CHECKS", {name: CHECKS[name] for name in names})


def test_the_command_leaves_a_folder_and_reads_it_again(call, monkeypatch):
    only(monkeypatch, "revert.once", "accept.audited")
    code, said = call(*COMMAND, "--json", "--strict", "-q")
    document = json.loads(said.out)
    assert code == 0
    assert [check["verdict"] for check in document["checks"]] == ["HELD", "HELD"]
    assert {path.name for path in Path("found").iterdir()} == {
        "checks.csv",
        "checks.json",
        "report.md",
        "manifest.json",
    }
    assert "2 HELD." in Path("found/report.md").read_text()
    monkeypatch.setattr(trial, "Bench", None)  # nothing is tried again
    assert json.loads(call(*COMMAND, "--json", "-q")[1].out) == document


def test_a_broken_promise_is_exit_code_1_when_strict(call, monkeypatch):
    only(monkeypatch, "revert.once")
    original = trial.Bench
    monkeypatch.setattr(
        trial, "Bench", lambda folder: original(folder, Product(system=RevertsAgain))
    )
    code, said = call(*COMMAND, "--strict")
    assert code == 1
    assert "BROKEN" in said.out


def test_another_record_promises_nothing_of_the_product():
    with pytest.raises(UserError, match="adr-0004"):
        trial.verify_consequences("adr-0003")


# The findings.


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_finding_shows_what_its_page_says(script, capsys):
    rows = dict(
        row.strip("| ").split(" | ")
        for row in script.with_suffix(".md").read_text(encoding="utf-8").splitlines()
        if row.startswith("| 0.")
    )
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(script), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    if version("elfmem") in rows:
        assert said[-1] == rows[version("elfmem")]
    assert stop.value.code == (said[-1] == "MISBEHAVES")


def test_every_finding_is_in_the_table():
    table = (FINDINGS / "README.md").read_text(encoding="utf-8")
    assert SCRIPTS
    assert all(f"({script.stem}.md)" in table for script in SCRIPTS)


def test_every_named_finding_exists():
    named = {entry.finding for entry in CHECKS.values() if entry.finding}
    assert named <= {script.stem for script in SCRIPTS}

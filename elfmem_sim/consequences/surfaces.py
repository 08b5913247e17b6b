"""What ADR 0004 promises of its surfaces: Python API, command line and MCP tools agree."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elfmem_sim.consequences.bench import (
    HOURS,
    Bench,
    Trial,
    audit,
    change,
    consequence,
    constitution,
    principles,
)
from elfmem_sim.consequences.stub import EMBEDDING_DIMENSION, serving
from elfmem_sim.standins import EMBEDDING_MODEL

_PATIENCE = 300.0  # seconds for one process; a busy machine takes its time
_WINDOW_HOURS = 720.0

REVIEW = "elfmem_review_constitutional"


@dataclass(frozen=True)
class Visitor:
    """The way to one database by every surface, in processes of their own.

    Args:
        bench: Where elfmem is.
        file: The database.
        url: The provider's base URL.
    """

    bench: Bench
    file: Path
    url: str

    @property
    def config(self) -> Path:
        """A configuration that knows no provider but the stub."""
        provider: dict[str, Any] = {"model": EMBEDDING_MODEL, "base_url": self.url}
        if self.bench.elfmem >= "0.19":
            provider["api_key_env"] = "OPENAI_API_KEY"
        path = self.file.with_name("config.yaml")
        settings = {
            "llm": provider,
            "embeddings": {**provider, "dimensions": EMBEDDING_DIMENSION},
        }
        path.write_text(json.dumps(settings))  # which is YAML, too
        return path

    @property
    def environment(self) -> dict[str, str]:
        """The product's, with this database and its configuration."""
        home = self.file.parent
        places = {"ELFMEM_DB": str(self.file), "ELFMEM_CONFIG": str(self.config)}
        return {**self.bench.product.environment(home), **places}

    def command(self, *arguments: str) -> Any:
        """Run an elfmem command; return its JSON, or a sentence on how it failed."""
        return self._run([*self.bench.product.command, *arguments], "")

    def visit(self, surface: str, *calls: tuple[str, dict[str, Any]]) -> Any:
        """Make calls by ``api``, ``memory`` or ``stdio``; return the results, or a sentence."""
        product = self.bench.product
        job = {
            "surface": surface,
            "db": str(self.file),
            "config": str(self.config),
            "server": product.server,
            "command": product.command,
            "calls": calls,
        }
        module = [sys.executable, "-m", "elfmem_sim.consequences.client"]
        return self._run(module, json.dumps(job))

    def _run(self, command: Sequence[str], stdin: str) -> Any:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.file.parent,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
            return f"exit code {done.returncode}: {last[:200]}"
        output = done.stdout.strip()
        try:
            return json.loads(output[output.find("\n[") + 1 :] if stdin else output)
        except ValueError:
            return f"no JSON: {output[:200]!r}"

    def dialogue(self, replies: Sequence[str]) -> str:
        """Run ``elfmem review`` on a pseudo-terminal with ``replies``; return what it said."""
        import pty

        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*self.bench.product.command, "review"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self.environment,
            cwd=self.file.parent,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            said, over = _converse(ours, replies)
            if over:
                process.wait(_PATIENCE)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        return said


def _converse(terminal: int, replies: Sequence[str]) -> tuple[str, bool]:
    """Answer each prompt with the next reply, until the other side hangs up.

    Returns:
        What was said, and whether the other side hung up; not if it asks for more than we reply.
    """
    import select

    said, heard, waiting = "", 0, list(replies)
    while select.select([terminal], [], [], _PATIENCE)[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other side hung up
            return said, True
        if not data:
            return said, True
        said += data.decode(errors="replace")
        place = said.find("[q]uit", heard)
        if place >= 0:
            if not waiting:
                break
            heard = place + 1
            os.write(terminal, waiting.pop(0).encode() + b"\n")
    return said, False


def without_mcp(trial: Trial) -> bool:
    """Whether MCP cannot be tried, because elfmem's extra for it is not installed."""
    if find_spec("fastmcp") is None:
        trial.undecided = "fastmcp is not installed: run `pip install 'elfmem[mcp]'`"
    return bool(trial.undecided)


# The same proposals by every surface.


def _agree(bench: Bench, trial: Trial, ask: Any) -> str:
    with serving() as url:
        there = Visitor(bench, bench.state(), url)
        if bench.reference is None:  # every copy of the state is the same
            bench.reference = _first(there.visit("api", ("review_constitutional", {})))
        reference, other = bench.reference, ask(there)
    proposals = len(reference["proposals"])
    if not proposals:
        trial.undecided = "the API proposes nothing, so there is nothing to compare"
    same = trial.expect(isinstance(other, dict), str(other))
    if same:
        for key in sorted(reference.keys() | other.keys()):
            trial.expect(reference.get(key) == other.get(key), f"{key} differ")
    return (
        f"{proposals} proposals with texts, rationales and drift scores to the last digit, and "
        "the counts, with the Python API's on the same state"
    )


@consequence(
    "surface.cli",
    "`elfmem review --json` proposes what the Python API proposes.",
    "cli",
)
def cli_agrees(bench: Bench, trial: Trial) -> str:
    """Compare the command line's answer."""
    return _agree(bench, trial, lambda there: there.command("review", "--json"))


@consequence(
    "surface.mcp_memory",
    "The MCP tool, by an in-memory client, proposes what the Python API proposes.",
    "mcp",
)
def memory_agrees(bench: Bench, trial: Trial) -> str:
    """Compare the answer of the server in one process with its client."""
    if without_mcp(trial):
        return ""
    return _agree(bench, trial, lambda there: _first(there.visit("memory", (REVIEW, {}))))


@consequence(
    "surface.mcp_stdio",
    "The MCP tool, behind `elfmem serve` on stdio, proposes what the Python API proposes.",
    "mcp",
)
def stdio_agrees(bench: Bench, trial: Trial) -> str:
    """Compare the answer of the server behind pipes."""
    if without_mcp(trial):
        return ""
    return _agree(bench, trial, lambda there: _first(there.visit("stdio", (REVIEW, {}))))


def _first(results: Any) -> Any:
    return results[0] if isinstance(results, list) else results


@consequence(
    "surface.window",
    "Proposals are made against the current operational centroid, whichever surface asks.",
    "mcp",
    finding="mcp-review-ignores-window",
)
def window(bench: Bench, trial: Trial) -> str:
    """Ask when nothing was used inside the window: there is nothing to judge by."""
    if without_mcp(trial):
        return ""
    file = bench.state()
    hours = str(HOURS + _WINDOW_HOURS + 1.0)
    change(file, "UPDATE system_config SET value = ? WHERE key = 'total_active_hours'", hours)
    with serving() as url:
        there = Visitor(bench, file, url)
        answers = {
            "the API": _first(there.visit("api", ("review_constitutional", {}))),
            "the command line": there.command("review", "--json"),
            "the MCP tool": _first(there.visit("memory", (REVIEW, {}))),
        }
    for who, answer in answers.items():
        held = isinstance(answer, dict) and answer["insufficient_history"]
        proposed = len(answer["proposals"]) if isinstance(answer, dict) else answer
        trial.expect(held, f"{who} proposes {proposed} from memories used before the window")
    return "whether each surface finds insufficient history when no block was used for 721 h"


# Deciding by the other surfaces.


@consequence(
    "cli.interactive",
    "`elfmem review` is interactive: an accept amends and is audited as the user's, a reject "
    "leaves the block alone.",
    "cli",
)
def interactive(bench: Bench, trial: Trial) -> str:
    """Accept, reject, skip, quit, on a pseudo-terminal."""
    file = bench.state()
    before = constitution(file)
    with serving() as url:
        there = Visitor(bench, file, url)
        proposals = there.command("review", "--json")["proposals"]
        said = there.dialogue(["a", "r", "s", "q"])
    rows = audit(file)
    first = proposals[0]
    expected = [(first["block_id"], first["original_content"], first["proposed_content"], "user")]
    keys = ("block_id", "pre_content", "post_content", "acceptor")
    trial.expect([tuple(row[key] for key in keys) for row in rows] == expected, f"audit {rows}")
    after = {**before, first["block_id"]: first["proposed_content"]}
    trial.expect(constitution(file) == after, "the constitution is not what was decided")
    for word in ("Accepted. Audit ID: ", "Rejected.", "Skipped.", "Accepted: 1, rejected: 1, "):
        trial.expect(word in said, f"it did not say {word!r}, but {said[-200:]!r}")
    return "the constitution, the audit table and what was said after accept, reject, skip, quit"


@consequence(
    "cli.decisions",
    "`elfmem review accept`, `list` and `revert` do what the API does.",
    "cli",
)
def cli_decides(bench: Bench, trial: Trial) -> str:
    """Accept, revert, list and revert again by commands."""
    file = bench.state()
    block, text = next(iter(constitution(file).items()))
    new = file.with_name("new.md")
    new.write_text(principles()[-1])
    with serving() as url:
        there = Visitor(bench, file, url)
        accepted = there.command(
            "review", "accept", block, "--content-file", str(new), "--yes", "--json"
        )
        _expect_amended(trial, file, accepted, block, text, "user")
        reverted = there.command("review", "revert", "1", "--yes", "--json")
        trial.expect(isinstance(reverted, dict), str(reverted))
        trial.expect(constitution(file)[block] == text, "the revert did not restore the text")
        _expect_listed(trial, there.command("review", "list", "--json"), reverted=True)
        again = there.command("review", "revert", "1", "--yes", "--json")
        trial.expect(str(again).startswith("exit code"), f"a second revert answers {again}")
    return "texts, audit rows and answers of accept, revert, list and a refused revert"


@consequence(
    "mcp.decisions",
    "Four MCP tools: review, accept (acceptor hard-coded to agent), revert, list.",
    "mcp",
)
def mcp_decides(bench: Bench, trial: Trial) -> str:
    """Accept, list, revert and revert again by tools."""
    if without_mcp(trial):
        return ""
    file = bench.state()
    block, text = next(iter(constitution(file).items()))
    accept = {"block_id": block, "proposed_content": principles()[-1]}
    with serving() as url:
        there = Visitor(bench, file, url)
        accepted = there.visit("memory", ("elfmem_accept_amendment", accept))
        _expect_amended(trial, file, _first(accepted), block, text, "agent")
        rest = there.visit(
            "memory",
            ("elfmem_list_amendments", {}),
            ("elfmem_revert_amendment", {"amendment_id": 1}),
            ("elfmem_list_amendments", {"block_id": block}),
            ("elfmem_revert_amendment", {"amendment_id": 1}),
        )
    if trial.expect(isinstance(rest, list), str(rest)):
        listed, reverted, listed_again, refused = rest
        _expect_listed(trial, listed.get("amendments"), reverted=False)
        trial.expect(reverted.get("post_content") == text, f"the revert answers {reverted}")
        _expect_listed(trial, listed_again.get("amendments"), reverted=True)
        trial.expect("recovery" in refused, f"a second revert answers {refused}")
    trial.expect(constitution(file)[block] == text, "the revert did not restore the text")
    return "texts, audit rows and answers of accept, list, revert, list and a refused revert"


def _expect_amended(
    trial: Trial, file: Path, answer: Any, block: str, text: str, acceptor: str
) -> None:
    """Expect one audit row by ``acceptor``, and the answer and the block to agree with it."""
    rows = audit(file)
    trial.expect(
        [(row["pre_content"], row["acceptor"]) for row in rows] == [(text, acceptor)],
        f"audit row by {[row['acceptor'] for row in rows]}",
    )
    trial.expect(constitution(file)[block] == principles()[-1], "the accept was not applied")
    trial.expect(isinstance(answer, dict) and answer.get("amendment_id") == 1, str(answer))


def _expect_listed(trial: Trial, listed: Any, *, reverted: bool) -> None:
    found = (
        [(row["id"], row["reverted_at"] is not None) for row in listed]
        if isinstance(listed, list)
        else listed
    )
    trial.expect(found == [(1, reverted)], f"listed are {found}")


@consequence(
    "surface.self_frame",
    "The SELF frame is invalidated on every accept: context reflects the new content immediately, "
    "also when the owner accepts on the command line.",
    "mcp",
    finding="accept-elsewhere-leaves-self-stale",
)
async def self_frame(bench: Bench, trial: Trial) -> str:
    """Accept on the command line while an agent runs that has its SELF frame cached."""
    file = bench.state()
    with serving() as url:
        there = Visitor(bench, file, url)
        async with bench.session(file) as system:
            block = (await system.frame("self")).blocks[0]
            new = file.with_name("new.md")
            new.write_text(principles()[-1])
            accepted = there.command(
                "review", "accept", block.id, "--content-file", str(new), "--yes", "--json"
            )
            text = (await system.frame("self")).text
    trial.expect(isinstance(accepted, dict), str(accepted))
    trial.expect(block.content not in text, "the running agent goes on with the old text")
    return "a running agent's SELF frame before and after an accept on the command line"

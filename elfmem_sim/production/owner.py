"""The agent's owner: holds the reviews, accepts and reverts, as in the model tier's review arm."""

from collections.abc import Callable
from typing import Any

from elfmem_sim.errors import InvariantError
from elfmem_sim.production.vitals import alignment
from elfmem_sim.production.world import World
from elfmem_sim.review import Amendment, ReviewRecord, accepts, regrets
from elfmem_sim.scenario import Review
from elfmem_sim.standins import TopicAnalyst
from elfmem_sim.topics import Vector

_ALL = 1_000_000  # amendments to list; elfmem shows 100 by default


class Owner:
    """Who decides on amendments.

    Args:
        review: The arm's settings.
        identity: Scenario, arm and seed.
        world: The agent's world.
        llm: The LLM's stand-in, which is told the day.
        read: Returns a text's topic.

    Attributes:
        reviews: What each review did.
        amendments: The amendment log.
    """

    def __init__(
        self,
        review: Review,
        identity: tuple[str, str, int],
        world: World,
        llm: TopicAnalyst,
        read: Callable[[str], Vector],
    ) -> None:
        self.reviews: list[ReviewRecord] = []
        self.amendments: list[Amendment] = []
        self._review = review
        self._identity = identity
        self._world = world
        self._llm = llm
        self._read = read
        self._due: dict[int, list[Amendment]] = {}

    def comes(self, day: int) -> bool:
        """Return whether there is anything to do at the end of ``day``."""
        return day in self._due or self._reviews(day)

    def _reviews(self, day: int) -> bool:
        return (day + 1) % self._review.cadence_days == 0

    async def decide(self, system: Any, constitution: list[str], day: int) -> None:
        """Carry out the reversions that are due, then perhaps a review, within a session.

        Args:
            system: elfmem's ``MemorySystem``.
            constitution: Names of the constitution's blocks, in the order of birth.
            day: The day that ends.

        Raises:
            InvariantError: If elfmem does not list what was amended.
        """
        for amendment in self._due.pop(day, []):
            await system.revert_amendment(amendment.id)
            amendment.reverted_day = day
        if self._reviews(day):
            await self._hold_review(system, constitution, day)
        await self._check_list(system, day)

    async def _hold_review(self, system: Any, constitution: list[str], day: int) -> None:
        self._llm.day = day
        result = await system.review_constitutional()
        blocks = [constitution.index(proposal.block_id) for proposal in result.proposals]
        accepted = [
            (block, proposal)
            for block, proposal in zip(blocks, result.proposals, strict=True)
            if accepts(self._review, self._identity, day, block, proposal.drift_score)
        ]
        for block, proposal in accepted:
            await self._accept(system, block, proposal, day)
        self.reviews.append(
            ReviewRecord(
                day=day,
                insufficient_history=result.insufficient_history,
                reviewed=result.reviewed_count,
                skipped=result.skipped_count,
                proposals=len(result.proposals),
                failed=result.failed_proposal_count,
                accepted=len(accepted),
            )
        )

    async def _accept(self, system: Any, block: int, proposal: Any, day: int) -> None:
        result = await system.accept_amendment(
            proposal.block_id,
            proposal.proposed_content,
            proposal.rationale,
            drift_score=proposal.drift_score,
            acceptor="user",
        )
        self_topic = self._world.identity[day + 1]
        amendment = Amendment(
            id=result.amendment_id,
            day=day,
            block=block,
            drift_score=proposal.drift_score,
            align_before=alignment(self._read(result.pre_content), self_topic),
            align_after=alignment(self._read(result.post_content), self_topic),
        )
        self.amendments.append(amendment)
        if regrets(self._review, self._identity, day, block):
            self._due.setdefault(day + self._review.revert_after_days, []).append(amendment)

    async def _check_list(self, system: Any, day: int) -> None:
        listed = await system.list_amendments(limit=_ALL)
        found = {(entry.id, entry.reverted_at is not None) for entry in listed}
        expected = {(a.id, a.reverted_day is not None) for a in self.amendments}
        if found != expected:
            scenario, arm, seed = self._identity
            raise InvariantError(
                "every amendment is listed, and a reverted one flagged",
                scenario=scenario,
                arm=arm,
                seed=seed,
                day=day,
                detail=f"listed are {sorted(found)}, not {sorted(expected)}",
            )

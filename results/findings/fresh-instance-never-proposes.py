"""At default configuration no review can propose, unless the agent has rescored.

Run it with any elfmem: it exits 1 while the behaviour is there, 0 without it.
"""

import asyncio
import hashlib
import sys
from importlib.metadata import version

import numpy as np
from elfmem import MemorySystem
from elfmem.db.engine import create_test_engine
from elfmem.db.queries import seed_builtin_data
from elfmem.types import BlockAnalysis
from sqlalchemy import text as sqlalchemy_text

CONSTITUTIONAL = ["self/constitutional"]


class Embedding:
    model_name = "toy"

    async def embed(self, text):
        seed = hashlib.sha256(text.encode()).digest()[:8]
        vector = np.random.default_rng(int.from_bytes(seed, "big")).normal(size=64)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    async def embed_batch(self, texts):
        return [await self.embed(text) for text in texts]


class LLM:
    async def process_block(self, block, self_context):
        return BlockAnalysis(alignment_score=0.5, tags=[], summary=block)

    async def propose_amendment(self, *, block_content, **_):
        return {"proposed_content": f"A better {block_content}", "rationale": "evidence"}

    async def detect_contradiction(self, block_a, block_b):
        return 0.0


async def new_agent():
    engine = await create_test_engine()
    async with engine.begin() as connection:
        await seed_builtin_data(connection)
    return MemorySystem(engine=engine, llm_service=LLM(), embedding_service=Embedding())


async def teach(agent, text, tags=()):
    block = (await agent.learn(text, tags=list(tags))).block_id
    await agent.dream()
    return block


async def sql(agent, statement, **values):
    async with agent._engine.begin() as connection:
        result = await connection.execute(sqlalchemy_text(statement), values)
        return result.fetchall() if result.returns_rows else []


async def main():
    agent = await new_agent()
    async with agent.session():
        principle = await teach(agent, "a principle", CONSTITUTIONAL)
        memories = [await teach(agent, f"memory number {i}") for i in range(25)]
        for _ in range(5):
            await agent.outcome([principle], 1.0, source="x")
            await agent.outcome(memories, 1.0, source="x")
        await sql(agent, "UPDATE blocks SET created_at = '2020-01-01T00:00:00+00:00'")
        result = await agent.review_constitutional()
        evidence = (
            await sql(
                agent,
                "SELECT success_count + failure_count FROM blocks WHERE id = :id",
                id=principle,
            )
        )[0][0]
    return (
        "a drifted, old principle is proposed, with 25 well-used memories and 5 outcomes on it",
        f"{len(result.proposals)} proposed, {result.skipped_count} skipped; the principle's "
        f"evidence is {evidence}, and min_block_evidence is 2.0",
        not result.proposals,
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

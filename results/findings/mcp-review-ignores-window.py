"""A review outside a session ignores its window, as the MCP tool's does.

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


async def new_agent(engine=None, **options):
    engine = engine or await create_test_engine()
    async with engine.begin() as connection:
        await seed_builtin_data(connection)
    return MemorySystem(engine=engine, llm_service=LLM(), embedding_service=Embedding(), **options)


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
        await teach(agent, "a principle", CONSTITUTIONAL)
        memory = await teach(agent, "a memory")
        await agent.outcome([memory], 1.0, source="x")
        await agent.outcome([memory], 1.0, source="x")
    # The memory was last used at about 0 active hours; 1000 have passed since.
    await sql(agent, "UPDATE system_config SET value = '1000' WHERE key = 'total_active_hours'")
    gates = {"min_recent_reinforced_blocks": 1, "min_block_evidence": 0.0, "min_age_days": 0.0}
    again = await new_agent(agent._engine)
    # What `elfmem serve` does when the review tool is the first to be called: no session.
    outside = await again.review_constitutional(window_hours=720.0, **gates)
    async with again.session():  # what the command line does
        inside = await again.review_constitutional(window_hours=720.0, **gates)
    return (
        "insufficient history either way: nothing was used in the last 720 active hours",
        f"insufficient inside a session: {inside.insufficient_history}; outside: "
        f"{outside.insufficient_history}, with {len(outside.proposals)} proposals",
        not outside.insufficient_history,
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

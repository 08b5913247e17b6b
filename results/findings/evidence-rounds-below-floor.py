"""Evidence that should be exactly 2 is 1.9999999999999998, and the block is skipped.

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
    alignment = 0.5

    async def process_block(self, block, self_context):
        return BlockAnalysis(alignment_score=self.alignment, tags=[], summary=block)

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
    found = []
    for promoted, *rescored in ((0.5, 0.5, 0.5), (0.99, 0.99, 0.86)):
        agent = await new_agent()
        agent._llm.alignment = promoted
        async with agent.session():
            principle = await teach(agent, "a principle", CONSTITUTIONAL)
            for alignment in rescored:
                agent._llm.alignment = alignment
                await sql(agent, "UPDATE blocks SET last_scored_at = '2020-01-01T00:00:00+00:00'")
                await agent.dream(rescore=True)
            memory = await teach(agent, "a memory")
            for _ in range(2):
                await agent.outcome([memory], 1.0, source="x")
            rows = await sql(
                agent,
                "SELECT success_count + failure_count FROM blocks WHERE id = :id",
                id=principle,
            )
            result = await agent.review_constitutional(
                min_recent_reinforced_blocks=1, min_age_days=0.0
            )
        found.append((rows[0][0], len(result.proposals)))
    (even, proposed), (odd, not_proposed) = found
    return (
        "the prior of 1 and two rescores of weight 0.5 meet the floor of 2, whatever the alignment",
        f"alignments .5, .5, .5: evidence {even!r}, {proposed} proposed; "
        f".99, .99, .86: evidence {odd!r}, {not_proposed} proposed",
        proposed == 1 and not_proposed == 0,
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

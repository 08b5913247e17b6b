"""A near-duplicate supersedes a constitutional block and deletes its tags.

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
    """Each text has a direction of its own, unless ``near`` puts it beside another's."""

    model_name = "toy"

    def __init__(self):
        self.near = {}  # text -> (other text, cosine)

    async def embed(self, text):
        text = text.strip().lower()
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        own = np.random.default_rng(seed).normal(size=64)
        if text in self.near:
            other, cosine = self.near[text]
            other = (await self.embed(other)).astype(float)
            own -= (own @ other) * other
            own = cosine * other + np.sqrt(1 - cosine**2) * own / np.linalg.norm(own)
        return (own / np.linalg.norm(own)).astype(np.float32)

    async def embed_batch(self, texts):
        return [await self.embed(text) for text in texts]


class LLM:
    async def process_block(self, block, self_context):
        return BlockAnalysis(alignment_score=0.5, tags=[], summary=block)

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
    agent._embedding.near["be honest, always"] = ("be honest", 0.93)
    async with agent.session():
        block = await teach(agent, "be honest", CONSTITUTIONAL)
        await teach(agent, "be honest, always")  # no tag, and no decision by anybody
        status = (await sql(agent, "SELECT status FROM blocks WHERE id = :id", id=block))[0][0]
        tagged = (
            await sql(agent, "SELECT count(*) FROM block_tags WHERE tag = 'self/constitutional'")
        )[0][0]
    return (
        "the principle stays, or is replaced by an explicit decision only",
        f"the principle is {status}; {tagged} of 1 constitutional tags are left",
        tagged == 0,
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

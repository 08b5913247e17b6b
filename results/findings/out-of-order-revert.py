"""Reverting amendments out of order resurrects a text that was reverted.

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
        block = await teach(agent, "original", CONSTITUTIONAL)
        first = await agent.accept_amendment(block, "amended once")
        second = await agent.accept_amendment(block, "amended twice")
        try:
            await agent.revert_amendment(first.amendment_id)  # the older one, out of order
            await agent.revert_amendment(second.amendment_id)
        except Exception as error:
            return "the older one cannot be reverted first", f"refused: {error}", False
        text = (await sql(agent, "SELECT content FROM blocks WHERE id = :id", id=block))[0][0]
        active = [a for a in await agent.list_amendments() if a.reverted_at is None]
    return (
        "the older one is refused while a newer one stands, or with both reverted the block says "
        "'original'",
        f"the block says {text!r} and {len(active)} amendments stand",
        text != "original",
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

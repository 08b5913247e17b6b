"""memory.search_window_hours is never read.

Run it with any elfmem: it exits 1 while the behaviour is there, 0 without it.
"""

import asyncio
import hashlib
import sys
from importlib.metadata import version

import numpy as np
from elfmem import MemorySystem
from elfmem.config import ElfmemConfig, MemoryConfig
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
    shown = {}
    for window in (1.0, 10000.0):
        config = ElfmemConfig(memory=MemoryConfig(search_window_hours=window))
        agent = await new_agent(config=config)
        async with agent.session():
            block = await teach(agent, "the meeting is on Tuesday")
            for used in (100.0, 5000.0):  # hours ago
                await sql(agent, "UPDATE blocks SET last_reinforced_at = :h", h=9000.0 - used)
                agent._session_base_hours = 9000.0
                frame = await agent.frame("attention", "the meeting is on Tuesday")
                shown[window, used] = block in [b.id for b in frame.blocks]
    right = {(window, used): used < window for window, used in shown}
    lines = [
        f"window {w:.0f} h, used {u:.0f} h ago: {'shown' if s else 'not shown'}"
        for (w, u), s in shown.items()
    ]
    return (
        "a block used 100 or 5000 hours ago is shown with a window of 10000 h, not with one of 1 h",
        "; ".join(lines),
        shown != right,
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

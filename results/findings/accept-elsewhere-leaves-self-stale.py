"""An accept by another process leaves a running agent's SELF frame stale.

Run it with any elfmem: it exits 1 while the behaviour is there, 0 without it.
"""

import asyncio
import hashlib
import sys
import tempfile
from importlib.metadata import version

import numpy as np
from elfmem import MemorySystem
from elfmem.db.engine import create_engine, create_test_engine
from elfmem.db.models import metadata
from elfmem.db.queries import seed_builtin_data
from elfmem.types import BlockAnalysis

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


async def main():
    with tempfile.TemporaryDirectory() as folder:
        engines = [await create_engine(f"{folder}/agent.db") for _ in range(2)]
        async with engines[0].begin() as connection:
            await connection.run_sync(metadata.create_all)
        # Two systems on one file: an agent on MCP, and its owner on the command line.
        agent, owner = [await new_agent(engine) for engine in engines]
        async with agent.session():
            block = await teach(agent, "be honest", CONSTITUTIONAL)
            before = (await agent.frame("self")).text
            async with owner.session():
                await owner.accept_amendment(block, "be kind", acceptor="user")
            after = await agent.frame("self")
        for system in (agent, owner):
            await system.close()
    return (
        "the agent's SELF frame says 'be kind' as soon as the owner has accepted it",
        f"before {'be honest' in before and 'be honest'!r}, after "
        f"{'be honest' if 'be honest' in after.text else 'be kind'!r} (cached: {after.cached}, "
        "for up to an hour)",
        "be honest" in after.text,
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

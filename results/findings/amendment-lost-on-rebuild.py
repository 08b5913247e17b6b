"""With files authoritative, an accepted amendment is not in the files, and a rebuild loses it.

Run it with any elfmem: it exits 1 while the behaviour is there, 0 without it.
"""

import asyncio
import hashlib
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from elfmem import MemorySystem
from elfmem.config import ElfmemConfig
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


async def main():
    expected = "the amendment is in the file that is the source of truth, and survives a rebuild"
    if "substrate" not in ElfmemConfig.model_fields:
        return expected, "files cannot be authoritative in this release", False
    from elfmem.memory.index_rebuild import rebuild_index

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / ".elfmem").mkdir()
        config = ElfmemConfig(substrate={"files_authoritative": True})
        agent = await new_agent(config=config, project_root=root)
        async with agent.session():
            amended = await teach(agent, "be honest", CONSTITUTIONAL)
            edited = await teach(agent, "be brief", CONSTITUTIONAL)
            await agent.accept_amendment(amended, "be honest and kind")
            await agent.edit(edited, "be brief and clear")
        fresh = await create_test_engine()
        async with fresh.begin() as connection:
            await seed_builtin_data(connection)
            memory = root / ".elfmem" / "memory"
            await rebuild_index(connection, memory, Embedding(), "toy")
            rows = await connection.execute(sqlalchemy_text("SELECT id, content FROM blocks"))
            texts = dict(rows.fetchall())
    return (
        expected,
        f"after a rebuild the amended block says {texts[amended]!r} (an edited one, for "
        f"comparison, {texts[edited]!r})",
        texts[amended].strip() == "be honest",
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))

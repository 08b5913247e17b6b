"""One visit to elfmem by one of its surfaces, in a process of its own: reads a job, prints results.

Run as a module, with an environment that leads nowhere but to temporary files. The job is one JSON
document on standard input: ``surface`` (``api``, ``memory`` for the MCP server in this process,
``stdio`` for one behind pipes), ``db``, ``config``, ``server``, ``command``, and ``calls``, a list
of a name and its arguments. The results are one JSON document, the last line of standard output.
"""

import asyncio
import importlib
import json
import os
import sys
from typing import Any


async def visit(job: dict[str, Any]) -> list[Any]:
    """Make the job's calls in one visit, in order; return what each returned."""
    if job["surface"] == "api":
        return await _by_api(job)
    from fastmcp import Client

    async with Client(_server(job)) as client:
        results = []
        for name, arguments in job["calls"]:
            answer = await client.call_tool(name, arguments)
            results.append(answer.structured_content)
        return results


async def _by_api(job: dict[str, Any]) -> list[Any]:
    from elfmem.api import MemorySystem

    results = []
    async with MemorySystem.managed(job["db"], job["config"], auto_dream=False) as system:
        for name, arguments in job["calls"]:
            answer = await getattr(system, name)(**arguments)
            results.append(
                [item.to_dict() for item in answer]
                if isinstance(answer, list)
                else answer.to_dict()
            )
    return results


def _server(job: dict[str, Any]) -> Any:
    if job["surface"] == "memory":
        module, attribute = job["server"].split(":")
        return getattr(importlib.import_module(module), attribute)
    from fastmcp.client.transports import StdioTransport

    program, *rest = job["command"]
    arguments = [*rest, "serve", "--db", job["db"], "--config", job["config"]]
    return StdioTransport(program, arguments, env=dict(os.environ), keep_alive=False)


if __name__ == "__main__":
    found = asyncio.run(visit(json.load(sys.stdin)))
    sys.stdout.write("\n" + json.dumps(found) + "\n")

"""ADR 0004's consequences, tried on the product: named checks, each with its evidence.

``bench`` is elfmem behind a seam, with a state to try it on; ``promises`` tries the Python API,
``migration`` the schema's change, ``surfaces`` command line and MCP tools against ``stub``, a local
stand-in for an OpenAI-compatible provider; ``client`` is what runs in a process of its own, away
from the user's settings; ``trial`` runs it all and leaves a results folder.
"""

"""elfmem-sim: a Monte-Carlo harness for the agent-memory library elfmem."""

__version__ = "0.1.0"

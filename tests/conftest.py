"""Settings that every test module shares."""

from hypothesis import settings

# The same examples everywhere and every time; no judgement by the clock of a shared machine.
settings.register_profile("elfmem-sim", deadline=None, derandomize=True, database=None)
settings.load_profile("elfmem-sim")

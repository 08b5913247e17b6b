"""The production tier: a whole agent on elfmem's own ``MemorySystem``, living a scenario.

The world is the model tier's at the same seed: the self's path, the constitution at birth, and what
is learned on which day are taken from the model's own run, and never depend on the arm. What the
agent makes of it is elfmem's: everything goes through its public API, on a database in memory that
elfmem itself laid out.

``world`` is what happens to an agent; ``system`` is elfmem, with clocks that are told the time;
``life`` lives the days; ``owner`` decides on amendments; ``vitals`` measures without a trace.
"""

from elfmem_sim.production.life import Life as Life
from elfmem_sim.production.life import check_production as check_production
from elfmem_sim.production.life import live as live
from elfmem_sim.production.life import loss_note as loss_note
from elfmem_sim.production.world import world_of as world_of

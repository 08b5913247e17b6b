"""``python -m elfmem_sim`` is ``elfmem-sim``."""

from elfmem_sim.cli import main

if __name__ == "__main__":
    main()

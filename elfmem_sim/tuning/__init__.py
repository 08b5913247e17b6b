"""Tuning: what can be varied, what matters, what to search for, what to recommend. Pure functions.

``space`` maps the unit cube to elfmem's settings, ``sensitivity`` analyses any function on that
cube, ``objectives`` turns outcomes into what a setting is judged by, ``search`` looks for settings
that none beats in everything, ``recommend`` picks a few by fixed rules, and ``words``, ``tables``
and ``figures`` say what came out. Who simulates is :mod:`elfmem_sim.tune`.
"""

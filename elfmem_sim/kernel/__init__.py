"""The compiled agent loop: no elfmem, no I/O, no pandas."""

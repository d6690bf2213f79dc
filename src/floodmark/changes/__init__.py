"""How changes are found: one file per strategy."""

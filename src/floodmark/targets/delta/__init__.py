"""Delta tables: each load is one commit, and its transaction id keeps it from landing twice."""

"""How to reach a database or a lake, whether rows come from it or go into it."""

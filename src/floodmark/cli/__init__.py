"""The command line: thin typer commands over `floodmark.project`, and the words that people read."""

import gc
import os

# A quiet run is over before any garbage is worth collecting; and pydantic would look through every installed package
# for plugins.
gc.set_threshold(100_000)
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

"""The command line: thin typer commands over `floodmark.project`, and the words that people read."""

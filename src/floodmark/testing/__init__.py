"""Contract suites, shipped for authors of plug-ins. Needs pytest; nothing in Floodmark imports it."""

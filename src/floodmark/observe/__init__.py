"""What runs leave for people and tools to see. Never changes an outcome."""

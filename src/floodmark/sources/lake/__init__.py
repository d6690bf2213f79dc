"""Tables of a lakehouse, which keep their older versions."""

"""Where rows land: one file per target."""

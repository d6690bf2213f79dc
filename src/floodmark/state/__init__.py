"""Where the ledger is kept: one file per store."""

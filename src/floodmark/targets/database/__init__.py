"""What databases have in common as targets: staged rows, one transaction that promotes them, heads beside the table."""

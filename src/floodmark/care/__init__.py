"""Table care: compaction, removal of old files, heads that outlive the history."""

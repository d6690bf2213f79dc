"""MySQL and MariaDB tables as targets: staged in parallel as text, promoted in one short transaction."""

"""Folders of Parquet files as targets: new files beside the old ones, and a manifest, created once, that names them."""

"""Writes docs/types.md from what real databases and a real run make of each type. Starts servers and Spark.

python scripts/write_types.py           write it
python scripts/write_types.py --print   show it
"""

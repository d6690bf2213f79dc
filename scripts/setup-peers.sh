#!/usr/bin/env bash
# Installs what Floodmark is measured against into .tools/peers, away from its own packages. Only `make bench-quick` asks.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/uv.sh

echo "Installing dlt into .tools/peers"
uv venv -q --clear .tools/peers
uv pip install -q --python .tools/peers/bin/python \
  dlt==1.31.0 deltalake==1.6.6 pyarrow==26.0.1 numpy==2.4.6 sqlalchemy==2.1.8 psycopg2-binary==2.9.13

#!/usr/bin/env bash
# Installs the packages that uv.lock names, and Floodmark itself, into .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

source scripts/uv.sh

echo "Installing the Python packages into .venv"
if [[ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_INDEX:-}${UV_EXTRA_INDEX_URL:-}" ]]; then
  uv sync -q --locked --extra all
else
  # `uv sync` would go to the hosts in uv.lock, or write this machine's into it. So: the same versions and checksums,
  # from this machine's index.
  [[ -x .venv/bin/python ]] || uv venv -q .venv
  mkdir -p .tools
  uv export -q --frozen --extra all --no-emit-project -o .tools/requirements.txt >/dev/null
  uv pip sync -q --python .venv/bin/python .tools/requirements.txt
  uv pip install -q --python .venv/bin/python --no-deps -e .
fi
# uv compiles what it copies, and Floodmark stays where it is.
.venv/bin/python -m compileall -q src

# Sourced in the project's folder: puts uv on PATH, from .tools where the machine has none, and tells it of this machine.

if ! command -v uv >/dev/null; then
  if [[ ! -x .tools/bin/uv ]]; then
    scripts/setup-system.sh venv
    echo "Installing uv into .tools"
    python3 -m venv .tools
    .tools/bin/python -m pip install -q uv
  fi
  export PATH="$PWD/.tools/bin:$PATH"
fi

# The machine's own Python; a download of another one is a surprise, and fails behind a firewall.
export UV_PYTHON_DOWNLOADS="${UV_PYTHON_DOWNLOADS:-never}"
# Compiled once here, rather than at each start.
export UV_COMPILE_BYTECODE="${UV_COMPILE_BYTECODE:-1}"
# A virtual environment that happens to be active is not ours to fill.
unset VIRTUAL_ENV

# uv does not read pip's settings: where pip was told to use another index, uv has to be told, too.
pip_index="${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}"
if [[ -n "$pip_index" && -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]]; then export UV_DEFAULT_INDEX="$pip_index"; fi

#!/usr/bin/env bash
# Sees that this machine has what is named: python, venv, java, postgres, mariadb, or a program that is called as its package.
# Installs only what is missing, with apt.
set -euo pipefail

# Java versions before 9 call themselves 1.x.
java_major() {
  local java=java
  if [[ -n "${JAVA_HOME:-}" ]]; then java="$JAVA_HOME/bin/java"; fi
  "$java" -version 2>&1 | sed -nE 's/.* version "(1\.)?([0-9]+).*/\2/p' | head -n 1
}

has_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return 0
  done
  return 1
}

has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

has_java() {
  local major
  major="$(java_major || true)"
  [[ -n "$major" && "$major" -ge 17 ]]
}

# As root the server runs as the user `postgres`, which Debian's package makes.
has_postgres() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || return 1
  [[ "$(id -u)" != 0 ]] || id postgres >/dev/null 2>&1
}

# The core packages have the server's programs and start no service; apt puts some where no user's PATH looks. Making a
# data folder takes a program of the client's.
has_mariadb() {
  { [[ -x /usr/sbin/mariadbd ]] || command -v mariadbd >/dev/null; } && command -v my_print_defaults >/dev/null
}

as_root() {
  if [[ "$(id -u)" == 0 ]]; then "$@"; else sudo "$@"; fi
}

can_install() {
  if ! command -v apt-get >/dev/null; then
    echo "Missing on this machine, and there is no apt-get to install it: $*" >&2
    echo "Install what these Debian packages hold, then run make again (Java: 17 or 21, in JAVA_HOME or on PATH)." >&2
    return 1
  fi
  if [[ "$(id -u)" != 0 ]] && ! command -v sudo >/dev/null; then
    echo "Missing on this machine: $*. As root, run: apt-get install $*" >&2
    return 1
  fi
}

install() {
  local packages=("$@")
  echo "Installing ${packages[*]}"
  as_root apt-get update -qq
  # Not every release has Java 17; Spark runs on 21 as well.
  if ! apt-cache show openjdk-17-jre-headless >/dev/null 2>&1; then packages=("${packages[@]/openjdk-17-/openjdk-21-}"); fi
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}"
}

# The package would start a server of its own on port 5432; tests only want its programs.
install_postgres() {
  local setting=/etc/postgresql-common/createcluster.d/floodmark-setup.conf failed=0
  as_root mkdir -p "${setting%/*}"
  echo 'create_main_cluster = false' | as_root tee "$setting" >/dev/null
  install postgresql || failed=$?
  as_root rm -f "$setting"
  return "$failed"
}

missing=()
for need in "$@"; do
  case "$need" in
    python)
      if ! has_python; then
        echo "Floodmark needs Python 3.11 or newer; python3 here is: $(python3 --version 2>&1 || true)" >&2
        echo "Install one (Debian 12 and Ubuntu 24.04 have it as python3), then run make again." >&2
        exit 1
      fi
      ;;
    venv) has_venv || missing+=(python3-venv) ;;
    java)
      if ! has_java; then
        if [[ -n "${JAVA_HOME:-}" ]]; then
          echo "Spark needs Java 17 or 21, and JAVA_HOME is $JAVA_HOME: set it to one, or unset it." >&2
          exit 1
        fi
        missing+=(openjdk-17-jre-headless)
      fi
      ;;
    postgres)
      if ! has_postgres; then
        can_install postgresql
        install_postgres
      fi
      ;;
    mariadb) has_mariadb || missing+=(mariadb-server-core mariadb-client-core) ;;
    *) command -v "$need" >/dev/null || missing+=("$need") ;;
  esac
done
if ((${#missing[@]})); then
  can_install "${missing[@]}"
  install "${missing[@]}"
fi

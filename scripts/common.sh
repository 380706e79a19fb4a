# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts beside it: where things lie and how a step is shown.
#
#   VENV    the virtual environment with PyTorch    default: .venv
#   PYTHON  the Python that makes it                default: python3
#   TORCH   what pip installs as PyTorch            default: torch==2.15.0
#   PREFIX  where actswap is installed              default: out
#   BUILD   where it is built                       default: build

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}
TORCH=${TORCH:-torch==2.15.0}
PREFIX=${PREFIX:-$top/out}
BUILD=${BUILD:-build}

case $VENV in /*) ;; *) VENV=$top/$VENV ;; esac
case $PREFIX in /*) ;; *) PREFIX=$top/$PREFIX ;; esac
export VENV PREFIX BUILD

die() {
    echo "${0##*/}: error: $*" >&2
    exit 1
}

# step WHAT COMMAND...: one line on the terminal; the command's output only if it fails.
step() {
    local what=$1 log start
    shift
    mkdir -p "$BUILD"
    log=$(mktemp)
    start=$SECONDS
    if ! "$@" >"$log" 2>&1 </dev/null; then
        printf '%-58s FAILED\n' "$what" >&2
        tail -n 60 "$log" >&2
        rm -f "$log"
        die "\`$*\` failed; its output is above"
    fi
    rm -f "$log"
    printf '%-58s %3d s\n' "$what" $((SECONDS - start))
}

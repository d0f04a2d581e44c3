#!/bin/sh
# Grades `windtunnel mcp conformance-client` with the protocol's official conformance tool, over loopback HTTP.
# Usage: .ci/conformance.sh BINARY [SCRATCH-FOLDER]
# Exit: 0 all client scenarios outside auth/* pass, 1 one fails, 77 skipped (npm is missing or cannot install).
set -u
binary=$(realpath "${1:?usage: conformance.sh BINARY [SCRATCH-FOLDER]}")
here=$(dirname "$(realpath "$0")")
scratch=${2:-$(mktemp -d)}

if ! command -v npm >/dev/null 2>&1; then
    echo "conformance: skipped, npm is missing"
    exit 77
fi
# The tool needs Node 22 or newer, which the platform package of `node` brings.
platform=$(uname -s | tr '[:upper:]' '[:lower:]')
case $(uname -m) in
    x86_64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) machine=$(uname -m) ;;
esac
mkdir -p "$scratch"
cd "$scratch" || exit 77
if [ ! -d node_modules/@modelcontextprotocol/conformance ] || [ ! -d "node_modules/node-$platform-$machine" ]; then
    [ -f package.json ] || npm init -y >/dev/null 2>&1
    if ! npm install --no-audit --no-fund --ignore-scripts \
        "node-$platform-$machine@22" @modelcontextprotocol/conformance@0.2.0-alpha.12 >install.log 2>&1; then
        echo "conformance: skipped, npm cannot install the tool (see install.log)"
        exit 77
    fi
fi
node="node_modules/node-$platform-$machine/bin/node"
tool=node_modules/@modelcontextprotocol/conformance/dist/index.js

status=0
for revision in 2025-11-25 2026-07-28; do
    echo "== client scenarios that $revision requires"
    # The list is the tool's own: whatever is added there is run here. Scenarios under auth/* are expected to fail, for
    # the reason that the baseline file gives; one that passes all the same makes the baseline stale and fails too.
    "$node" "$tool" client --command "$binary mcp conformance-client" --requirements "$revision" \
        --expected-failures "$here/conformance-expected-failures.yml" -o "results-$revision" >"log-$revision" 2>&1
    code=$?
    grep -E '^(✓|✗|  ✓|  ✗|Total|.*(passed|failed|Expected|Unexpected|baseline|Stale))' "log-$revision" | tail -60
    [ $code -eq 0 ] || status=1
    echo "exit $code"
done
exit $status

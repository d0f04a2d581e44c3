#!/bin/sh
# Probes real servers of both eras, from npm and PyPI. Usage: .ci/probe-servers.sh BINARY [SCRATCH-FOLDER]
# Exit: 0 each ended with a report, in time, and left nothing; 1 otherwise; 77 skipped (npm or python3 is missing).
set -u
binary=$(realpath "${1:?usage: probe-servers.sh BINARY [SCRATCH-FOLDER]}")
scratch=${2:-$(mktemp -d)}
for tool in npm node python3; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "probe-servers: skipped, $tool is missing"
        exit 77
    fi
done
mkdir -p "$scratch"
cd "$scratch" || exit 77
if [ ! -d node_modules/@modelcontextprotocol/server-memory ]; then
    [ -f package.json ] || npm init -y >/dev/null 2>&1
    npm install --no-audit --no-fund --ignore-scripts \
        @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 \
        @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-sequential-thinking@2026.8.31 \
        @upstash/context7-mcp@4.1.1 @playwright/mcp@0.0.83 >install.log 2>&1 ||
        { echo "probe-servers: skipped, npm cannot install (see install.log)"; exit 77; }
fi
if [ ! -x venv/bin/mcp-server-time ]; then
    { python3 -m venv venv && venv/bin/pip install -q mcp-server-time==2026.10.19 mcp-server-git==2026.10.19 \
        mcp-server-fetch==2026.10.24; } >install.log 2>&1 ||
        { echo "probe-servers: skipped, pip cannot install (see install.log)"; exit 77; }
fi
if [ ! -x venv1/bin/mcp-server-sqlite ]; then
    { python3 -m venv venv1 && venv1/bin/pip install -q mcp-server-sqlite==2025.4.25 mcp==1.30.0; } >install.log 2>&1 ||
        { echo "probe-servers: skipped, pip cannot install (see install.log)"; exit 77; }
fi
mkdir -p files
status=0
probe() {
    name=$1
    shift
    timeout 180 "$binary" mcp probe --format json -- "$@" >"report-$name.json" 2>"error-$name.txt"
    code=$?
    [ $code -le 1 ] || { echo "$name: exit $code"; status=1; return; }
    python3 - "$name" <<'PY' || status=1
import collections, json, sys
name = sys.argv[1]
report = json.load(open(f"report-{name}.json"))
words = collections.Counter(f["id"] for f in report["findings"])
print(f"{name}: {report['era']} {report['version']}, versions {','.join(report['versions'])}, "
      f"{len(report['tools'])} tools, {sum(t['tokens'] for t in report['tools'])} tokens, "
      f"shutdown {report['shutdown_seconds']:.2f} s, left {report['leftover_processes']}, "
      f"findings {dict(sorted(words.items()))}")
sys.exit(report["leftover_processes"] != 0)
PY
}
probe everything node_modules/.bin/mcp-server-everything
probe filesystem node_modules/.bin/mcp-server-filesystem "$PWD/files"
probe memory node_modules/.bin/mcp-server-memory
probe sequential-thinking node_modules/.bin/mcp-server-sequential-thinking
probe context7 node_modules/.bin/context7-mcp
probe playwright node_modules/.bin/playwright-mcp
probe time venv/bin/mcp-server-time --local-timezone UTC
probe git venv/bin/mcp-server-git
probe fetch venv/bin/mcp-server-fetch
probe sqlite venv1/bin/mcp-server-sqlite --db-path "$PWD/files/test.db"
exit $status

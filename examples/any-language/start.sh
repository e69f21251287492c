#!/usr/bin/env bash
# Makes a service in Node safe to retry: the second line of the program is all it takes.
# The service is started again whenever it dies.
#
#	go install ./cmd/reprise
#	examples/any-language/start.sh
#	curl -d 'seat 1' -H 'Idempotency-Key: "7c1f"' localhost:8080/orders   # twice: one charge
#
# With STORE=redis://localhost:6379 REPRISE_PREFIX=orders: the answers outlive the proxy too.
# With DELAY=10000 there
# is time to kill the service while it works on an order: its retry is refused, because the
# money may have been taken, and reprise stuck shows the order.
set -euo pipefail
export PORT=${PORT:-3000}
reprise proxy --listen "${LISTEN:-127.0.0.1:8080}" --upstream "http://127.0.0.1:$PORT" --store "${STORE:-memory}" --unscoped &
proxy=$! service=
trap 'kill "$proxy" $service 2>/dev/null' EXIT
trap exit INT TERM
while kill -0 "$proxy" 2>/dev/null; do
	node "$(dirname "$0")/orders.js" &
	service=$!
	wait "$service" || true
done

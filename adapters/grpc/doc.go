// Package reprisegrpc serves the Idempotency-Key header in unary calls of gRPC.
package reprisegrpc

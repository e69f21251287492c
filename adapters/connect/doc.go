// Package repriseconnect serves the Idempotency-Key header in unary calls of Connect.
package repriseconnect

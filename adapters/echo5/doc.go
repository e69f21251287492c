// Package repriseecho5 serves the Idempotency-Key header in Echo v5.
package repriseecho5

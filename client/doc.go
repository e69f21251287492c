// Package repriseclient is the client's end of the Idempotency-Key header.
package repriseclient

package rpc

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
)

// Detail is a detail of an error: the full name of a message, and the message in the
// encoding of protocol buffers.
type Detail struct {
	Type  string
	Value []byte
}

// domain is that of the google.rpc.ErrorInfo in refusals of Reprise.
const domain = "github.com/reprise-go/reprise"

// RefusalOf returns the refusal that the details of an error describe. Code is empty if
// it is not one of Reprise; RetryAfter is that of a google.rpc.RetryInfo of any service.
func RefusalOf(details []Detail) (p repriseclient.Problem) {
	for _, d := range details {
		switch d.Type {
		case "google.rpc.ErrorInfo":
			var reason, of string
			fields(d.Value, func(field, _ uint64, text []byte) {
				switch field {
				case 1:
					reason = string(text)
				case 2:
					of = string(text)
				}
			})
			if of == domain {
				p.Code = repriseclient.Code(strings.ToLower(strings.ReplaceAll(reason, "_", "-")))
			}
		case "google.rpc.RetryInfo":
			p.Retryable = true
			fields(d.Value, func(field, _ uint64, duration []byte) {
				if field == 1 {
					p.RetryAfter = durationOf(duration)
				}
			})
		}
	}
	return p
}

// durationOf reads a google.protobuf.Duration; 0 stands for one that is negative.
func durationOf(b []byte) (d time.Duration) {
	fields(b, func(field, n uint64, _ []byte) {
		switch {
		case field == 1 && n <= math.MaxInt32:
			d += time.Duration(n) * time.Second //nolint:gosec // bounded
		case field == 2 && n < uint64(time.Second):
			d += time.Duration(n) //nolint:gosec // bounded
		}
	})
	return d
}

// fields calls f with the fields of an encoded message, each with its number or its
// bytes, up to the first that is invalid or of another kind.
func fields(b []byte, f func(field, n uint64, text []byte)) {
	for {
		tag, size := binary.Uvarint(b)
		if size <= 0 {
			return
		}
		b = b[size:]
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return
		}
		b = b[size:]
		switch tag & 7 {
		case 0:
			f(tag>>3, n, nil)
		case 2:
			if n > uint64(len(b)) {
				return
			}
			f(tag>>3, 0, b[:n])
			b = b[n:]
		default:
			return
		}
	}
}

// Package rpcstatus reads the statuses of gRPC and Connect, as far as they say whether a
// call may be repeated.
package rpcstatus

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
)

// Detail is a detail of an error: the full name of a message, and the message in the
// encoding of protocol buffers.
type Detail struct {
	Type  string
	Value []byte
}

// Refusal is what the details of an error say about a retry.
type Refusal struct {
	Code       string        // with which Reprise refused the call, as key-reused; empty: it did not
	Retry      bool          // there is a google.rpc.RetryInfo, of any service
	RetryAfter time.Duration // that it asks to wait
}

// domain is that of the google.rpc.ErrorInfo in refusals of Reprise.
const domain = "github.com/reprise-go/reprise"

// RefusalOf returns the refusal that the details of an error describe.
func RefusalOf(details []Detail) (r Refusal) {
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
				r.Code = strings.ToLower(strings.ReplaceAll(reason, "_", "-"))
			}
		case "google.rpc.RetryInfo":
			r.Retry = true
			fields(d.Value, func(field, _ uint64, duration []byte) {
				if field == 1 {
					r.RetryAfter = durationOf(duration)
				}
			})
		}
	}
	return r
}

// DetailsOf returns the details of an encoded google.rpc.Status.
func DetailsOf(status []byte) []Detail {
	var details []Detail
	fields(status, func(field, _ uint64, message []byte) {
		if field != 3 { // an Any
			return
		}
		var d Detail
		fields(message, func(field, _ uint64, text []byte) {
			switch field {
			case 1:
				d.Type = string(text[1+strings.LastIndexByte(string(text), '/'):])
			case 2:
				d.Value = text
			}
		})
		details = append(details, d)
	})
	return details
}

// durationOf reads a google.protobuf.Duration; 0 stands for one that is negative.
func durationOf(b []byte) (d time.Duration) {
	fields(b, func(field, n uint64, _ []byte) {
		switch {
		case field == 1 && n <= math.MaxInt32:
			d += time.Duration(n) * time.Second
		case field == 2 && n < uint64(time.Second):
			d += time.Duration(n)
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

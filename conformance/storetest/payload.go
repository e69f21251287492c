package storetest

import (
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var payloadCases = []testCase{
	{
		conformance.Case{
			ID:     "payload-all-bytes",
			Rule:   "A payload of all 256 byte values comes back unchanged, the zero byte included.",
			Source: "G2 replay equality",
		},
		func(e *env) {
			var b strings.Builder
			for i := range 512 {
				b.WriteByte(byte(i * 3)) // 3 and 256 have no common divisor: every value, twice
			}
			e.roundTrip(b.String())
		},
	},
	{
		conformance.Case{
			ID:     "payload-empty",
			Rule:   "An empty payload, nil or not, is a completion like any other.",
			Source: "CompleteRequest.Payload",
		},
		func(e *env) {
			e.roundTrip("")
			first := e.caller()
			first.claimNew()
			ctx, cancel := e.call()
			defer cancel()
			if err := first.store.Complete(ctx, store.CompleteRequest{ID: first.id, Owner: first.owner, Policy: store.Policy{Retention: long}}); err != nil {
				e.Fatalf("complete: %v, want success", err)
			}
			first.rival().replay("")
		},
	},
	{
		conformance.Case{
			ID:     "payload-lookalikes",
			Rule:   "A payload is bytes: numbers, null, escapes, invalid UTF-8 and bytes that look like a record are kept unchanged.",
			Source: "G2 replay equality",
		},
		func(e *env) {
			for _, payload := range []string{
				"0", "-1", "nil", "NULL", "false", "1.79e+15", `\x00`, `\\x41`, "'; --", "{}", "%s", "\r\n", "$-1\r\n", " ",
				"\x00", "\x01", "\x02", "\xff\xfe", "\xc3\x28", "\xef\xbb\xbf",
			} {
				e.roundTrip(payload)
			}
		},
	},
	{
		conformance.Case{
			ID:     "payload-sizes",
			Rule:   "Payloads up to 1 MiB come back unchanged, in sizes around every power of two.",
			Source: "G2 replay equality",
		},
		func(e *env) {
			random := make([]byte, 1<<20)
			_, _ = rand.Read(random)
			for size := 2; size <= len(random); size *= 4 {
				for _, n := range []int{size - 1, size, min(size+1, len(random))} {
					e.roundTrip(string(random[:n]))
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "payload-buffer",
			Rule:   "The caller may reuse its buffer after the call.",
			Source: "CompleteRequest.Payload",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			buffer := []byte("the answer of the first")
			ctx, cancel := e.call()
			defer cancel()
			if err := first.store.Complete(ctx, store.CompleteRequest{ID: first.id, Owner: first.owner, Payload: buffer, Policy: store.Policy{Retention: long}}); err != nil {
				e.Fatalf("complete: %v, want success", err)
			}
			copy(buffer, "the answer of the next!")
			first.replay("the answer of the first")
			first.rival().replay("the answer of the first")
		},
	},
	{
		conformance.Case{
			ID:     "payload-own",
			Rule:   "Every ID keeps its own payload.",
			Source: "Store, interface comment",
		},
		func(e *env) {
			callers := make([]caller, 20)
			for i := range callers {
				callers[i] = e.caller()
				callers[i].claimNew()
				callers[i].complete("answer " + strconv.Itoa(i))
			}
			for i, c := range callers {
				c.rival().replay("answer " + strconv.Itoa(i))
			}
		},
	},
}

// roundTrip completes a new operation with the payload and replays it in both processes.
func (e *env) roundTrip(payload string) {
	e.Helper()
	first := e.caller()
	first.claimNew()
	first.complete(payload)
	first.replay(payload)
	first.rival().replay(payload)
}

package storetest

import (
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

var payloadCases = []testCase{
	{
		conformance.Case{
			ID:     "payload-all-bytes",
			Rule:   "A payload of all 256 byte values comes back as it was, the zero byte included.",
			Source: "G2 replay equality",
		},
		func(r *rig) {
			var b strings.Builder
			for i := range 512 {
				b.WriteByte(byte(i * 3)) // 3 and 256 have no common divisor: every value, twice
			}
			r.roundTrip(b.String())
		},
	},
	{
		conformance.Case{
			ID:     "payload-empty",
			Rule:   "An empty payload, nil or not, is a completion like any other.",
			Source: "CompleteRequest.Payload",
		},
		func(r *rig) {
			r.roundTrip("")
			first := r.party()
			first.anew()
			ctx, cancel := r.call()
			defer cancel()
			if err := first.store.Complete(ctx, reprise.CompleteRequest{ID: first.id, Owner: first.owner, Retention: long}); err != nil {
				r.Fatalf("complete: %v, want success", err)
			}
			first.rival().replay("")
		},
	},
	{
		conformance.Case{
			ID:     "payload-lookalikes",
			Rule:   "A payload is bytes: numbers, null, escapes, invalid UTF-8 and what looks like a record are kept as they are.",
			Source: "G2 replay equality",
		},
		func(r *rig) {
			for _, payload := range []string{
				"0", "-1", "nil", "NULL", "false", "1.79e+15", `\x00`, `\\x41`, "'; --", "{}", "%s", "\r\n", "$-1\r\n", " ",
				"\x00", "\x01", "\x02", "\xff\xfe", "\xc3\x28", "\xef\xbb\xbf",
			} {
				r.roundTrip(payload)
			}
		},
	},
	{
		conformance.Case{
			ID:     "payload-sizes",
			Rule:   "Payloads of any size up to 1 MiB come back as they were, around every power of two.",
			Source: "G2 replay equality",
		},
		func(r *rig) {
			random := make([]byte, 1<<20)
			_, _ = rand.Read(random)
			for size := 2; size <= len(random); size *= 4 {
				for _, n := range []int{size - 1, size, min(size+1, len(random))} {
					r.roundTrip(string(random[:n]))
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
		func(r *rig) {
			first := r.party()
			first.anew()
			buffer := []byte("the answer of the first")
			ctx, cancel := r.call()
			defer cancel()
			if err := first.store.Complete(ctx, reprise.CompleteRequest{ID: first.id, Owner: first.owner, Payload: buffer, Retention: long}); err != nil {
				r.Fatalf("complete: %v, want success", err)
			}
			copy(buffer, "the answer of the next!")
			first.replay("the answer of the first")
			first.rival().replay("the answer of the first")
		},
	},
	{
		conformance.Case{
			ID:     "payload-own",
			Rule:   "Every ID has the payload that it was completed with, and no other's.",
			Source: "Store, interface comment",
		},
		func(r *rig) {
			parties := make([]party, 20)
			for i := range parties {
				parties[i] = r.party()
				parties[i].anew()
				parties[i].complete("answer " + strconv.Itoa(i))
			}
			for i, p := range parties {
				p.rival().replay("answer " + strconv.Itoa(i))
			}
		},
	},
}

// roundTrip completes a new operation with the payload and replays it in both processes.
func (r *rig) roundTrip(payload string) {
	r.Helper()
	first := r.party()
	first.anew()
	first.complete(payload)
	first.replay(payload)
	first.rival().replay(payload)
}

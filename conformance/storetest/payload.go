package storetest

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// roundTrip completes an operation with the payload and replays it in both processes.
func roundTrip(payload string) []step {
	return []step{a.claims(first), a.completes(payload), a.claims(replay(payload)), b.claims(replay(payload))}
}

// everyByte has every byte value twice: 3 and 256 have no common divisor.
func everyByte() string {
	var b strings.Builder
	for i := range 512 {
		b.WriteByte(byte(i * 3))
	}
	return b.String()
}

// sizes returns payloads around every power of four, up to 1 MiB.
func sizes() (all []string) {
	random := make([]byte, 1<<20)
	_, _ = rand.Read(random)
	for size := 2; size <= len(random); size *= 4 {
		for _, n := range []int{size - 1, size, min(size+1, len(random))} {
			all = append(all, string(random[:n]))
		}
	}
	return all
}

var payloadCases = []testCase{
	scenario("payload-all-bytes", nil, "G2 replay equality",
		"A payload of all 256 byte values comes back unchanged, the zero byte included.",
		roundTrip(everyByte())...),
	scenario("payload-empty", nil, "CompleteRequest.Payload",
		"An empty payload, nil or not, is a completion like any other.",
		append(roundTrip(""), a.of(1).claims(first), a.of(1).call("completes with nil", func(_ *scene, c *caller) error {
			return tell(c, "complete", func(ctx context.Context) error {
				return c.store.Complete(ctx, store.CompleteRequest{ID: c.ID, Owner: c.Owner, Policy: c.Policy})
			})
		}), b.of(1).claims(replay("")))...),
	scenario("payload-lookalikes", nil, "G2 replay equality",
		"A payload is bytes: numbers, null, escapes, invalid UTF-8 and bytes that look like a record are kept unchanged.",
		each([]string{
			"0", "-1", "nil", "NULL", "false", "1.79e+15", `\x00`, `\\x41`, "'; --", "{}", "%s", "\r\n", "$-1\r\n", " ",
			"\x00", "\x01", "\x02", "\xff\xfe", "\xc3\x28", "\xef\xbb\xbf",
		}, roundTrip)),
	function("payload-sizes", nil, "G2 replay equality",
		"Payloads up to 1 MiB come back unchanged, in sizes around every power of two.",
		func(s *scene) { s.must(each(sizes(), roundTrip)) }),
	scenario("payload-buffer", nil, "CompleteRequest.Payload",
		"The caller may reuse its buffer after the call.",
		a.claims(first), a.call("completes, and reuses its buffer", func(_ *scene, c *caller) error {
			r := c.completion("the answer of the first")
			defer copy(r.Payload, "the answer of the next!")
			return tell(c, "complete", func(ctx context.Context) error { return c.store.Complete(ctx, r) })
		}), a.claims(replay("the answer of the first")), b.claims(replay("the answer of the first"))),
	scenario("payload-own", nil, "Store, interface comment",
		"Every ID keeps its own payload.",
		repeated(20, func(i int) []step {
			return []step{a.of(i).claims(first), a.of(i).completes("answer " + strconv.Itoa(i))}
		}),
		repeated(20, func(i int) []step { return []step{b.of(i).claims(replay("answer " + strconv.Itoa(i)))} })),
}

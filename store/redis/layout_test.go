package repriseredis

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The layouts are shared with processes of another version during a deployment, so they
// are pinned here byte by byte. The record itself is pinned in lab, where there is a
// server to make it.
func TestArgumentsHaveTheirLayout(t *testing.T) {
	t.Parallel()
	owner := store.Owner{0: 0xa0, 15: 0xa1}
	fingerprint := store.Fingerprint{0: 0xb0, 31: 0xb1}
	ownerHex := "a0" + strings.Repeat("00", 14) + "a1"
	fingerprintHex := "b0" + strings.Repeat("00", 30) + "b1"
	claim := store.ClaimRequest{Owner: owner, Fingerprint: fingerprint, Lease: time.Second, Retention: time.Hour, MaxAttempts: 3, Label: "pay"}
	takeover, waiting, bare := claim, claim, claim
	takeover.Takeover = true
	waiting.Waiting = true
	bare.Lease, bare.Retention, bare.MaxAttempts, bare.Label = time.Millisecond, time.Millisecond, math.MaxInt, ""
	complete := store.CompleteRequest{Owner: owner, Fingerprint: fingerprint, Retention: time.Hour, Payload: []byte("pay"), Label: "pay", Attempt: 1, Fence: 0x0102}
	later, unknown := complete, complete
	later.Attempt = 2
	unknown.Attempt = 0
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"record of a claim", appendClaimRecord(nil, &claim), "21" + ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "03706179"},
		{"record without a label", appendClaimRecord(nil, &bare), "21" + ownerHex + fingerprintHex + "00000000000003e8" + "00000000000003e8" + "00"},
		{"claim", appendClaim(nil, &claim), ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "00" + "00000003" + "03706179"},
		{"takeover", appendClaim(nil, &takeover), ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "01" + "00000003" + "03706179"},
		{"waiting", appendClaim(nil, &waiting), ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "02" + "00000003" + "03706179"},
		{"claim without limits", appendClaim(nil, &bare), ownerHex + fingerprintHex + "00000000000003e8" + "00000000000003e8" + "00" + "ffffffff" + "00"},
		{"owned", appendOwned(nil, owner, time.Second), ownerHex + "00000000000f4240"},
		{"expected", appendExpected(nil, &complete), "21" + ownerHex},
		{"expected of a later attempt", appendExpected(nil, &later), "00" + ownerHex},
		{"expected of an unknown attempt", appendExpected(nil, &unknown), "00" + ownerHex},
		{"completed", appendCompleted(nil, &complete), "23" + ownerHex + fingerprintHex + "00000000000102" + "000000d693a400" + "00000003" + "03706179"},
		{"keep", appendResolution(nil, &store.Resolution{Fence: 258, Retention: time.Second}), "0000000000000102" + "00" + "00000000000f4240"},
		{"forget", appendResolution(nil, &store.Resolution{Fence: 258, Forget: true, Retention: -1}), "0000000000000102" + "01" + "0000000000000000"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
	longest := store.CompleteRequest{Attempt: 1, Label: strings.Repeat("l", store.MaxLabel), Retention: store.MaxDuration}
	if n := len(appendCompleted(appendExpected(nil, &longest), &longest)); n != maxFixed {
		t.Errorf("the arguments of a completion have %d bytes, and a command has room for %d", n, maxFixed)
	}
}

func TestTheSpanOfAKeyEndsWithItsRecord(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		lease, retention time.Duration
		want             int64
	}{
		{ms, ms, 1},
		{ms, 2 * ms, 1},
		{ms, 3 * ms, 2},
		{3 * ms, ms, 2},
		{ms, 3*ms - time.Nanosecond, 2},
		{ms, 3*ms + time.Microsecond, 3},
		{ms, 3*ms + time.Nanosecond, 2}, // less than the resolution
		{store.MaxDuration, ms, store.MaxDuration.Milliseconds() - 1},
	} {
		if got := claimSpan(c.lease, c.retention); got != c.want {
			t.Errorf("lease %v, retention %v: the key lasts %d ms, want %d", c.lease, c.retention, got, c.want)
		}
	}
}

// claimedRecord and the others are records as another process may have written them.
var (
	recordHead      = strings.Repeat("aa", 16) + strings.Repeat("bb", 32)
	claimedRecord   = "21" + recordHead + "00000000000f4240" + "00000000d693a400" + "03706179"
	watchedRecord   = "22" + recordHead + "00000000000f4240" + "00000000d693a400" + "00000002" + "0000000000000102" + "00"
	completedRecord = "23" + recordHead + "00000000000102" + "000000d693a400" + "00000002" + "03706179" + "00ff"
	resolvedRecord  = "24" + recordHead + "00000000000102" + "000000d693a400" + "00000000" + "00" + "00000002" + "000000000007" + "01"
	forgottenRecord = "25" + "0000000000000102"
)

func TestRecordsThatAClaimFinds(t *testing.T) {
	t.Parallel()
	fingerprint := store.Fingerprint(bytes.Repeat([]byte{0xbb}, 32))
	for _, c := range []struct {
		record string
		want   record
	}{
		{claimedRecord, record{fingerprint: fingerprint}},
		{watchedRecord, record{fingerprint: fingerprint}},
		{completedRecord, record{fingerprint: fingerprint, completed: true, retention: time.Hour, payload: []byte{0, 0xff}}},
		{resolvedRecord, record{fingerprint: fingerprint, completed: true, retention: time.Hour, payload: []byte{}}},
		{forgottenRecord, record{forgotten: true}},
	} {
		b := unhex(t, c.record)
		if got, ok := parseRecord(b); !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.record, got, ok, c.want)
		}
		for n := range b {
			if _, ok := parseRecord(b[:n]); ok {
				t.Errorf("%s without its last %d bytes is accepted", c.record, len(b)-n)
			}
		}
		if _, ok := parseRecord(append(b, 0)); ok {
			t.Errorf("%s with a byte more is accepted", c.record)
		}
		b[0] ^= 0x10
		if _, ok := parseRecord(b); ok {
			t.Errorf("%s is accepted with another version", c.record)
		}
	}
}

func TestAnswersOfAClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string // hexadecimal after the tag
		want   store.ClaimResult
	}{
		{"+ 00000002 0000000000000102 00000000000003e8", store.ClaimResult{Outcome: store.Claimed, Attempt: 2, Fence: 258, Remaining: time.Millisecond}},
		{"= 00000002 0000000000000102 fffffffffffffc18", store.ClaimResult{Outcome: store.Claimed, Attempt: 2, Fence: 258, Remaining: -time.Millisecond}},
		{"P 00000000000003e8", store.ClaimResult{Outcome: store.InProgress, Remaining: time.Millisecond}},
		{"#" + completedRecord[2:], store.ClaimResult{Outcome: store.Completed, Payload: []byte{0, 0xff}}},
		{"$" + resolvedRecord[2:], store.ClaimResult{Outcome: store.Completed, Payload: []byte{}}},
		{"M", store.ClaimResult{Outcome: store.Mismatch}},
		{"L", store.ClaimResult{Outcome: store.Lapsed}},
	} {
		b := answer(t, c.answer)
		got, ok := parseClaim(b)
		if !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.answer, got, ok, c.want)
		}
		if _, ok := parseClaim(append(b, 0)); ok {
			t.Errorf("%s with a byte more is accepted", c.answer)
		}
		if _, ok := parseClaim(b[:len(b)-1]); ok {
			t.Errorf("%s with a byte less is accepted", c.answer)
		}
	}
}

// A replay with its validity needs a completed record.
func TestValidityOfWhatIsNotCompleted(t *testing.T) {
	t.Parallel()
	const left = "V 00000000000003e8"
	if got, ok := parseClaim(answer(t, left+completedRecord)); !ok || got.Validity != time.Millisecond {
		t.Errorf("a completed record reads %+v, %v", got, ok)
	}
	for _, record := range []string{claimedRecord, watchedRecord, forgottenRecord, ""} {
		if got, ok := parseClaim(answer(t, left+record)); ok {
			t.Errorf("%q reads %+v, want none", record, got)
		}
	}
}

func TestAnswersOfAnInspection(t *testing.T) {
	t.Parallel()
	id := store.ID{1}
	const clock = "0000000000002710"
	for _, c := range []struct {
		answer string
		want   store.Record
	}{
		{
			"R 21 00000002 0000000000000102 fffffffffffffc18 00000000000007d0 0000000000000001 0000000000000000" + clock + "00 0000000000000000 03706179",
			store.Record{ID: id, State: store.StateLapsed, Attempt: 2, Fence: 258, Lease: -time.Millisecond, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), Label: "pay"},
		},
		{
			"R 22 00000002 0000000000000102 00000000000003e8 00000000000007d0 0000000000000001 0000000000000000" + clock + "00 0000000000000000 00",
			store.Record{ID: id, State: store.StateRunning, Attempt: 2, Fence: 258, Lease: time.Millisecond, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1)},
		},
		{
			"R 24 00000001 0000000000000102 0000000000000000 ffffffffffffffff 0000000000000001 0000000000000005" + clock + "01 0000000000000002 00 6869",
			store.Record{ID: id, State: store.StateCompleted, Attempt: 1, Fence: 258, Validity: store.MaxDuration, ClaimedAt: time.UnixMilli(1), CompletedAt: time.UnixMilli(5), Resolved: true, Size: 2, Payload: []byte("hi")},
		},
		{ // at its end a lease has ended, and so has a record
			"R 21 00000001 0000000000000102 0000000000000000 0000000000000000 0000000000000001 0000000000000000" + clock + "00 0000000000000000 00",
			store.Record{ID: id, State: store.StateLapsed, Attempt: 1, Fence: 258, ClaimedAt: time.UnixMilli(1)},
		},
		{ // in a listing
			"R 23 00000001 0000000000000102 0000000000000000 00000000000007d0 0000000000000001 0000000000000005" + clock + "00 0000000000000002 00",
			store.Record{ID: id, State: store.StateCompleted, Attempt: 1, Fence: 258, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), CompletedAt: time.UnixMilli(5), Size: 2},
		},
		{"U 00000000000007d0 0000000000000007", store.Record{ID: id, State: store.StateUnreadable, Validity: 2 * time.Millisecond, Size: 7}},
	} {
		got, at, ok := parseView(id, answer(t, c.answer))
		if !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads\n%+v, %v; want\n%+v", c.answer, got, ok, c.want)
		}
		if want := time.UnixMilli(10); got.State != store.StateUnreadable && !at.Equal(want) {
			t.Errorf("%s was at %v, want %v", c.answer, at, want)
		}
	}
}

// FuzzAnswers shows that no answer, whoever gave it, does worse than being refused.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("+\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x0f\x42\x40"))
	f.Add([]byte("P\x00"))
	f.Add([]byte("R\x23"))
	f.Add([]byte("U\x23"))
	f.Add([]byte{})
	for _, record := range []string{claimedRecord, watchedRecord, completedRecord, resolvedRecord, forgottenRecord} {
		f.Add(unhex(f, record))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := parseClaim(b); ok && (r.Outcome < store.Claimed || r.Outcome > store.Lapsed) {
			t.Errorf("accepted with outcome %v", r.Outcome)
		}
		if r, ok := parseRecord(b); ok && !r.completed && r.payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
		if r, _, ok := parseView(store.ID{}, b); ok && r.State != store.StateCompleted && r.Payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
	})
}

func TestAKeyIsThePrefixAndTheID(t *testing.T) {
	t.Parallel()
	id := store.ID{0: 0xab, 31: 0x01}
	s := &Store{prefix: "p*[?]\\:"}
	if got, want := s.key(id), "p*[?]\\:\xab"+strings.Repeat("\x00", 30)+"\x01"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if got, want := s.pattern(), `p\*\[\?\]\\:*`; got != want {
		t.Errorf("pattern %q, want %q", got, want)
	}
	l := lister{store: s, shown: map[store.ID]bool{}}
	keys := []string{s.key(id), s.key(id), s.prefix + "short", s.prefix + strings.Repeat("l", 33), strings.Repeat("o", 40)}
	if got := l.ids(keys, nil); len(got) != 1 || got[0] != id {
		t.Errorf("found %v, want the one ID", got)
	}
}

// answer reads a tag and hexadecimal digits.
func answer(t *testing.T, text string) []byte {
	t.Helper()
	return append([]byte{text[0]}, unhex(t, strings.ReplaceAll(text[1:], " ", ""))...)
}

func unhex(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

package record

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

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
		want   Found
	}{
		{claimedRecord, Found{Fingerprint: fingerprint}},
		{watchedRecord, Found{Fingerprint: fingerprint}},
		{completedRecord, Found{Fingerprint: fingerprint, Completed: true, Retention: time.Hour, Payload: []byte{0, 0xff}}},
		{resolvedRecord, Found{Fingerprint: fingerprint, Completed: true, Retention: time.Hour, Payload: []byte{}}},
		{forgottenRecord, Found{Forgotten: true}},
	} {
		b := unhex(t, c.record)
		if got, ok := Parse(b); !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.record, got, ok, c.want)
		}
		for n := range b {
			if _, ok := Parse(b[:n]); ok {
				t.Errorf("%s without its last %d bytes is accepted", c.record, len(b)-n)
			}
		}
		if _, ok := Parse(append(b, 0)); ok {
			t.Errorf("%s with a byte more is accepted", c.record)
		}
		b[0] ^= 0x10
		if _, ok := Parse(b); ok {
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
		got, ok := ParseClaim(b)
		if !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.answer, got, ok, c.want)
		}
		if _, ok := ParseClaim(append(b, 0)); ok {
			t.Errorf("%s with a byte more is accepted", c.answer)
		}
		if _, ok := ParseClaim(b[:len(b)-1]); ok {
			t.Errorf("%s with a byte less is accepted", c.answer)
		}
	}
}

// A replay with its validity needs a completed record.
func TestOnlyCompletedRecordsHaveAValidity(t *testing.T) {
	t.Parallel()
	const left = "V 00000000000003e8"
	if got, ok := ParseClaim(answer(t, left+completedRecord)); !ok || got.Validity != time.Millisecond {
		t.Errorf("a completed record reads %+v, %v", got, ok)
	}
	for _, record := range []string{claimedRecord, watchedRecord, forgottenRecord, ""} {
		if got, ok := ParseClaim(answer(t, left+record)); ok {
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
			store.Record{ID: id, State: store.StateLapsed, Attempt: 2, Fence: 258, Lease: -time.Millisecond, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), Policy: store.Policy{Label: "pay"}},
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
		got, at, ok := ParseView(id, answer(t, c.answer))
		if !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads\n%+v, %v; want\n%+v", c.answer, got, ok, c.want)
		}
		if want := time.UnixMilli(10); got.State != store.StateUnreadable && !at.Equal(want) {
			t.Errorf("%s was at %v, want %v", c.answer, at, want)
		}
	}
}

// FuzzAnswers shows that no answer does worse than being refused.
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
		if r, ok := ParseClaim(b); ok && (r.Outcome < store.Claimed || r.Outcome > store.Lapsed) {
			t.Errorf("accepted with outcome %v", r.Outcome)
		}
		if r, ok := Parse(b); ok && !r.Completed && r.Payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
		if r, _, ok := ParseView(store.ID{}, b); ok && r.State != store.StateCompleted && r.Payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
	})
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

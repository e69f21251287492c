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
	carefulRecord   = "21" + recordHead + "00000000000f4240" + "00000000d693a400" + "c3706179" + "000000000f4240"
	describedRecord = "21" + recordHead + "00000000000f4240" + "00000000d693a400" + "ff" + "0303" + "706179" + "474554" + "000000000f4240"
	toldRecord      = "23" + recordHead + "00000000000102" + "000000d693a400" + "00000002" + "3f" + "0003" + "474554" + "00ff"
	watchedRecord   = "22" + recordHead + "00000000000f4240" + "00000000d693a400" + "00000002" + "0000000000000102" + "0000000000000007" + "00"
	unknownRecord   = "27" + recordHead + "00000000000f4240" + "00000000d693a400" + "00000002" + "0000000000000102" + "0000000000000007" + "43706179" + "62616e6b"
	completedRecord = "23" + recordHead + "00000000000102" + "000000d693a400" + "00000002" + "03706179" + "00ff"
	separateRecord  = "23" + recordHead + "00000000000102" + "000000d693a400" + "00000002" + "83706179" + "000000000f4240"
	laterRecord     = "24" + recordHead + "00000000000102" + "000000d693a400" + "00000000" + "00" + "00000002" + "000000000007"
	forgottenRecord = "25" + "0000000000000102"
	resolvedRecord  = "26" + recordHead + "00000000000102" + "000000d693a400" + "00000002" + "00" + "00000002" + "000000000007" + "0000000000000007" + "0000000000000000" + "00ff"
	outlivedRecord  = "26" + recordHead + "00000000000102" + "000000d693a400" + "00000002" + "00" + "00000002" + "000000000007" + "0000000000000007" + "0000000000000001"
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
		{carefulRecord, Found{Fingerprint: fingerprint}},
		{describedRecord, Found{Fingerprint: fingerprint}},
		{toldRecord, Found{Fingerprint: fingerprint, Completed: true, Payload: []byte{0, 0xff}}},
		{unknownRecord, Found{Fingerprint: fingerprint}},
		{completedRecord, Found{Fingerprint: fingerprint, Completed: true, Payload: []byte{0, 0xff}}},
		{separateRecord, Found{Fingerprint: fingerprint, Completed: true, Separate: true}},
		{laterRecord, Found{Fingerprint: fingerprint, Completed: true, Payload: []byte{}}},
		{resolvedRecord, Found{Fingerprint: fingerprint, Completed: true, Payload: []byte{0, 0xff}}},
		{outlivedRecord, Found{Fingerprint: fingerprint, Completed: true, Separate: true}},
		{forgottenRecord, Found{Forgotten: true}},
	} {
		b := unhex(t, c.record)
		if got, ok := Parse(b); !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.record, got, ok, c.want)
		}
		whole := b
		if c.record == unknownRecord { // its end is the reason
			whole = b[:len(b)-len("bank")+1]
		}
		for n := range whole {
			if _, ok := Parse(b[:n]); ok {
				t.Errorf("%s without its last %d bytes is accepted", c.record, len(b)-n)
			}
		}
		if _, ok := Parse(append(b, 0)); ok && c.record != unknownRecord {
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
		{"C 00ff", store.ClaimResult{Outcome: store.Completed, Payload: []byte{0, 0xff}}},
		{"C", store.ClaimResult{Outcome: store.Completed, Payload: []byte{}}},
		{"E", store.ClaimResult{Outcome: store.Expired}},
		{"M", store.ClaimResult{Outcome: store.Mismatch}},
		{"L", store.ClaimResult{Outcome: store.Lapsed}},
	} {
		b := answer(t, c.answer)
		got, ok := ParseClaim(b)
		if !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.answer, got, ok, c.want)
		}
		if c.want.Outcome == store.Completed {
			continue // the rest of it is the payload
		}
		if _, ok := ParseClaim(append(b, 0)); ok {
			t.Errorf("%s with a byte more is accepted", c.answer)
		}
		if _, ok := ParseClaim(b[:len(b)-1]); ok {
			t.Errorf("%s with a byte less is accepted", c.answer)
		}
	}
}

func TestAnswersOfAnInspection(t *testing.T) {
	t.Parallel()
	id := store.ID{1}
	const clock = "0000000000002710"
	hour := store.Policy{Retention: time.Hour}
	fingerprint := store.Fingerprint(bytes.Repeat([]byte{0xbb}, 32))
	hexPrint := strings.Repeat("bb", 32)
	for _, c := range []struct {
		answer string
		want   store.Record
	}{
		{
			"RP 00000002 0000000000000102 fffffffffffffc18 00000000000007d0 0000000000000001 0000000000000000" + clock + "00 0000000000000000 00000000d693a400" + hexPrint + "ff 03 03 706179 474554 000000000f4240",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateLapsed, Attempt: 2, Fence: 258, Lease: -time.Millisecond, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), Policy: store.Policy{Label: "pay", AtMostOnce: true, Retention: time.Hour, Horizon: time.Second}, Description: "GET"},
		},
		{
			"RL 00000002 0000000000000102 fffffffffffffc18 00000000000007d0 0000000000000001 0000000000000000" + clock + "00 0000000000000000 00000000d693a400" + hexPrint + "43706179 62616e6b",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateUnknown, Attempt: 2, Fence: 258, Lease: -time.Millisecond, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), Policy: store.Policy{Label: "pay", AtMostOnce: true, Retention: time.Hour}, Reason: "bank"},
		},
		{
			"RP 00000002 0000000000000102 00000000000003e8 00000000000007d0 0000000000000001 0000000000000000" + clock + "00 0000000000000000 00000000d693a400" + hexPrint + "00",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateRunning, Policy: hour, Attempt: 2, Fence: 258, Lease: time.Millisecond, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1)},
		},
		{
			"RC 00000001 0000000000000102 0000000000000000 ffffffffffffffff 0000000000000001 0000000000000005" + clock + "01 0000000000000002 00000000d693a400" + hexPrint + "00 6869",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateCompleted, Policy: hour, Attempt: 1, Fence: 258, Validity: store.MaxDuration, ClaimedAt: time.UnixMilli(1), CompletedAt: time.UnixMilli(5), Resolved: true, Size: 2, Payload: []byte("hi")},
		},
		{ // at its end a lease has ended, and so has a record
			"RP 00000001 0000000000000102 0000000000000000 0000000000000000 0000000000000001 0000000000000000" + clock + "00 0000000000000000 00000000d693a400" + hexPrint + "00",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateLapsed, Policy: hour, Attempt: 1, Fence: 258, ClaimedAt: time.UnixMilli(1)},
		},
		{ // in a listing
			"RC 00000001 0000000000000102 0000000000000000 00000000000007d0 0000000000000001 0000000000000005" + clock + "00 0000000000000002 00000000d693a400" + hexPrint + "00",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateCompleted, Policy: hour, Attempt: 1, Fence: 258, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), CompletedAt: time.UnixMilli(5), Size: 2},
		},
		{
			"RE 00000001 0000000000000102 0000000000000000 00000000000007d0 0000000000000001 0000000000000005" + clock + "00 0000000000000000 00000000d693a400" + hexPrint + "00",
			store.Record{ID: id, Fingerprint: fingerprint, State: store.StateExpired, Policy: hour, Attempt: 1, Fence: 258, Validity: 2 * time.Millisecond, ClaimedAt: time.UnixMilli(1), CompletedAt: time.UnixMilli(5)},
		},
		{"U 00000000000007d0 0000000000000007 0000000000000102", store.Record{ID: id, State: store.StateUnreadable, Fence: 258, Validity: 2 * time.Millisecond, Size: 7}},
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
	f.Add([]byte("RC"))
	f.Add([]byte("U\x23"))
	f.Add([]byte{})
	for _, record := range []string{claimedRecord, carefulRecord, describedRecord, toldRecord, watchedRecord, unknownRecord, completedRecord, separateRecord, laterRecord, resolvedRecord, outlivedRecord, forgottenRecord} {
		f.Add(unhex(f, record))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := ParseClaim(b); ok && (r.Outcome < store.Claimed || r.Outcome > store.Expired) {
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

// answer reads the letters of tags and then hexadecimal digits.
func answer(t *testing.T, text string) []byte {
	t.Helper()
	tags, digits, _ := strings.Cut(text, " ")
	return append([]byte(tags), unhex(t, strings.ReplaceAll(digits, " ", ""))...)
}

func unhex(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

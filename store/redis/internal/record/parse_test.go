package record

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

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

// FuzzAnswers shows that no answer does worse than being refused.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("+\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x0f\x42\x40"))
	f.Add([]byte("P\x00"))
	f.Add([]byte("R\x03"))
	f.Add([]byte{})
	for _, record := range []string{claimedRecord, carefulRecord, describedRecord, toldRecord, watchedRecord, unknownRecord, completedRecord, separateRecord, laterRecord, resolvedRecord, outlivedRecord, forgottenRecord} {
		f.Add(unhex(f, record))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := ParseClaim(b); ok && (r.Outcome < store.Claimed || r.Outcome > store.Expired) {
			t.Errorf("accepted with outcome %v", r.Outcome)
		} else if _, longer := ParseClaim(append(b, 0)); ok && r.Outcome != store.Completed && longer { // the rest of that is the payload
			t.Error("accepted with a byte more")
		}
		if r, ok := Parse(b); ok && !r.Completed && r.Payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
		if r, _, ok := ParseView(store.ID{}, b); ok && r.State != store.StateCompleted && r.Payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
	})
}

func unhex(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

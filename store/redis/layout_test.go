package repriseredis

import (
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// The layouts are shared with processes of another version during a deployment, so they
// are pinned here byte by byte. The record itself is pinned in lab, where there is a
// server to make it.
func TestArgumentsHaveTheirLayout(t *testing.T) {
	t.Parallel()
	owner := reprise.Owner{0: 0xa0, 15: 0xa1}
	fingerprint := reprise.Fingerprint{0: 0xb0, 31: 0xb1}
	ownerHex := "a0" + strings.Repeat("00", 14) + "a1"
	fingerprintHex := "b0" + strings.Repeat("00", 30) + "b1"
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{
			"claim",
			appendClaim(nil, &reprise.ClaimRequest{Owner: owner, Fingerprint: fingerprint, Lease: time.Second, Retention: time.Hour, Takeover: true, MaxAttempts: 3}),
			ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "01" + "00000003",
		},
		{
			"claim without limits",
			appendClaim(nil, &reprise.ClaimRequest{Owner: owner, Fingerprint: fingerprint, Lease: time.Millisecond, Retention: time.Millisecond, MaxAttempts: math.MaxInt}),
			ownerHex + fingerprintHex + "00000000000003e8" + "00000000000003e8" + "00" + "ffffffff",
		},
		{"owned", appendOwned(nil, owner, time.Second), ownerHex + "00000000000f4240"},
		{"keep", appendResolution(nil, &reprise.Resolution{Fence: 258, Retention: time.Second}), "0000000000000102" + "00" + "00000000000f4240"},
		{"forget", appendResolution(nil, &reprise.Resolution{Fence: 258, Forget: true, Retention: -1}), "0000000000000102" + "01" + "0000000000000000"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
		if len(c.got) > maxFixed {
			t.Errorf("%s has %d bytes and would allocate, at most %d", c.name, len(c.got), maxFixed)
		}
	}
}

func TestAnswersOfAClaim(t *testing.T) {
	t.Parallel()
	completed := "\x12" + strings.Repeat("00", completedHead-1)
	for _, c := range []struct {
		answer string // hexadecimal after the tag
		want   reprise.ClaimResult
	}{
		{"+ 00000002 0000000000000102 00000000000003e8", reprise.ClaimResult{Outcome: reprise.Claimed, Attempt: 2, Fence: 258, Remaining: time.Millisecond}},
		{"= 00000002 0000000000000102 fffffffffffffc18", reprise.ClaimResult{Outcome: reprise.Claimed, Attempt: 2, Fence: 258, Remaining: -time.Millisecond}},
		{"P 00000000000003e8", reprise.ClaimResult{Outcome: reprise.InProgress, Remaining: time.Millisecond}},
		{completed + "00ff", reprise.ClaimResult{Outcome: reprise.Completed, Payload: []byte{0, 0xff}}},
		{completed, reprise.ClaimResult{Outcome: reprise.Completed, Payload: []byte{}}},
		{"M", reprise.ClaimResult{Outcome: reprise.Mismatch}},
		{"L", reprise.ClaimResult{Outcome: reprise.Lapsed}},
	} {
		b := answer(t, c.answer)
		got, ok := parseClaim(b)
		if !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s reads %+v, %v; want %+v", c.answer, got, ok, c.want)
		}
		if c.want.Outcome == reprise.Completed {
			if _, ok := parseClaim(b[:completedHead-1]); ok {
				t.Errorf("a completed record without all of its head is accepted")
			}
			continue // any payload is one
		}
		if _, ok := parseClaim(append(b, 0)); ok {
			t.Errorf("%s with a byte more is accepted", c.answer)
		}
		if _, ok := parseClaim(b[:len(b)-1]); ok {
			t.Errorf("%s with a byte less is accepted", c.answer)
		}
	}
}

func TestAnswersOfAnInspection(t *testing.T) {
	t.Parallel()
	id := reprise.ID{1}
	lapsed, ok := parseRecord(id, answer(t, "R 11 00000002 0000000000000102 fffffffffffffc18 00000000000007d0"))
	want := reprise.Record{ID: id, State: reprise.StateLapsed, Attempt: 2, Fence: 258, Lease: -time.Millisecond, Validity: 2 * time.Millisecond}
	if !ok || !reflect.DeepEqual(lapsed, want) {
		t.Errorf("reads %+v, %v; want %+v", lapsed, ok, want)
	}
	completed, ok := parseRecord(id, answer(t, "R 12 00000001 0000000000000102 0000000000000000 00000000000007d0 6869"))
	want = reprise.Record{ID: id, State: reprise.StateCompleted, Attempt: 1, Fence: 258, Validity: 2 * time.Millisecond, Size: 2, Payload: []byte("hi")}
	if !ok || !reflect.DeepEqual(completed, want) {
		t.Errorf("reads %+v, %v; want %+v", completed, ok, want)
	}
}

// FuzzAnswers shows that no answer, whoever gave it, does worse than being refused.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("+\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x0f\x42\x40"))
	f.Add([]byte("P\x00"))
	f.Add([]byte("\x12"))
	f.Add([]byte("R\x12"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := parseClaim(b); ok && (r.Outcome < reprise.Claimed || r.Outcome > reprise.Lapsed) {
			t.Errorf("accepted with outcome %v", r.Outcome)
		}
		if r, ok := parseRecord(reprise.ID{}, b); ok && r.State != reprise.StateCompleted && r.Payload != nil {
			t.Errorf("accepted an unfinished record with a payload")
		}
	})
}

func TestAKeyIsThePrefixAndTheID(t *testing.T) {
	t.Parallel()
	id := reprise.ID{0: 0xab, 31: 0x01}
	s := &Store{prefix: "p*[?]\\:"}
	if got, want := s.key(id), "p*[?]\\:\xab"+strings.Repeat("\x00", 30)+"\x01"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if got, want := s.pattern(), `p\*\[\?\]\\:*`; got != want {
		t.Errorf("pattern %q, want %q", got, want)
	}
	known := map[reprise.ID]bool{}
	keys := []string{s.key(id), s.key(id), s.prefix + "short", s.prefix + strings.Repeat("l", 33), strings.Repeat("o", 40)}
	if got := s.unknownIDs(keys, known); len(got) != 1 || got[0] != id {
		t.Errorf("found %v, want the one ID", got)
	}
}

// answer reads a tag and hexadecimal digits.
func answer(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text[1:], " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{text[0]}, b...)
}

package record

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Records are shared with processes of another version during a deployment, so those that
// a client writes are pinned here byte by byte, and those of scripts in lab, where there
// is a server to make them.
func TestRecordsHaveTheirLayout(t *testing.T) {
	t.Parallel()
	owner := store.Owner{0: 0xa0, 15: 0xa1}
	fingerprint := store.Fingerprint{0: 0xb0, 31: 0xb1}
	ownerHex := "a0" + strings.Repeat("00", 14) + "a1"
	fingerprintHex := "b0" + strings.Repeat("00", 30) + "b1"
	claim := store.ClaimRequest{Owner: owner, Fingerprint: fingerprint, Lease: time.Second, Policy: store.Policy{Retention: time.Hour, Label: "pay"}}
	bare, careful := claim, claim
	careful.AtMostOnce, careful.Horizon = true, time.Second+time.Microsecond
	bare.Lease, bare.Retention, bare.MaxAttempts, bare.Label = time.Millisecond, time.Millisecond, math.MaxInt, ""
	described := careful
	described.Description = "GET"
	complete := store.CompleteRequest{Owner: owner, Fingerprint: fingerprint, Policy: store.Policy{Retention: time.Hour, Label: "pay"}, Payload: []byte("pay"), Attempt: 1, Fence: 0x0102}
	later, unknown, remembered := complete, complete, complete
	remembered.Horizon = time.Second + time.Microsecond
	told := remembered
	told.Description = "GET"
	later.Attempt = 2
	unknown.Attempt = 0
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"record of a claim", AppendClaimed(nil, &claim), "21" + ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "03706179"},
		{"record without a label", AppendClaimed(nil, &bare), "21" + ownerHex + fingerprintHex + "00000000000003e8" + "00000000000003e8" + "00"},
		{"record with a horizon", AppendClaimed(nil, &careful), "21" + ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "c3706179" + "000000000f4241"},
		{"record with a description", AppendClaimed(nil, &described), "21" + ownerHex + fingerprintHex + "00000000000f4240" + "00000000d693a400" + "ff" + "0303" + "706179" + "474554" + "000000000f4241"},
		{"completed with a description", AppendCompleted(nil, &told), "23" + ownerHex + fingerprintHex + "00000000000102" + "000000d693a400" + "00000003" + "bf" + "0303" + "706179" + "474554" + "000000000f4241"},
		{"completed with a horizon", AppendCompleted(nil, &remembered), "23" + ownerHex + fingerprintHex + "00000000000102" + "000000d693a400" + "00000003" + "83706179" + "000000000f4241"},
		{"claim without limits", AppendClaim(nil, &bare), ownerHex + fingerprintHex + "00000000000003e8" + "00000000000003e8" + "00" + "ffffffff" + "00"},
		{"expected", AppendExpected(nil, &complete), "21" + ownerHex},
		{"expected of a later attempt", AppendExpected(nil, &later), "00" + ownerHex},
		{"expected of an unknown attempt", AppendExpected(nil, &unknown), "00" + ownerHex},
		{"completed", AppendCompleted(nil, &complete), "23" + ownerHex + fingerprintHex + "00000000000102" + "000000d693a400" + "00000003" + "03706179"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
	longest := store.CompleteRequest{Attempt: 1, Policy: store.Policy{Label: strings.Repeat("l", store.MaxLabel), Retention: time.Hour, Horizon: store.MaxDuration - time.Hour}}
	if n := len(AppendCompleted(AppendExpected(nil, &longest), &longest)); n != MaxFixed {
		t.Errorf("the arguments of a completion have %d bytes, and a command has room for %d", n, MaxFixed)
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
		if got := ClaimSpan(c.lease, c.retention); got != c.want {
			t.Errorf("lease %v, retention %v: the key lasts %d ms, want %d", c.lease, c.retention, got, c.want)
		}
	}
}

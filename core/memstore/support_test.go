package memstore_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

const (
	lease     = 10 * time.Second
	retention = time.Hour
)

var inTime, wantError = teststore.InTime, teststore.WantError

// operation is an ID with a fingerprint and one owner, and the requests that they make.
type operation struct {
	id          store.ID
	fingerprint store.Fingerprint
	owner       store.Owner
}

func newOperation() operation {
	return operation{id: store.ID(numbered(1)), fingerprint: store.Fingerprint{1}, owner: store.NewOwner()}
}

// by returns the same operation of another owner.
func (o operation) by(owner store.Owner) operation {
	o.owner = owner
	return o
}

func (o operation) claim() store.ClaimRequest {
	return store.ClaimRequest{ID: o.id, Owner: o.owner, Fingerprint: o.fingerprint, Lease: lease, Policy: store.Policy{Retention: retention}, Takeover: true}
}

func (o operation) complete(payload string) store.CompleteRequest {
	return store.CompleteRequest{ID: o.id, Owner: o.owner, Payload: []byte(payload), Policy: store.Policy{Retention: retention}}
}

// numbered returns 32 bytes that differ in every n and, for consecutive n, in their
// shard.
func numbered(n int) (b [32]byte) {
	b[0] = byte(n)
	binary.BigEndian.PutUint64(b[8:], uint64(n))
	return b
}

// mustClaim claims and fails the test unless the outcome is the wanted one.
func mustClaim(t *testing.T, s *memstore.Store, r store.ClaimRequest, want store.Outcome) store.ClaimResult {
	t.Helper()
	got, err := s.Claim(t.Context(), r)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	if got.Outcome != want {
		t.Fatalf("Claim answered %v, want %v", got.Outcome, want)
	}
	return got
}

func mustComplete(t *testing.T, s *memstore.Store, r store.CompleteRequest) {
	t.Helper()
	if err := s.Complete(t.Context(), r); err != nil {
		t.Fatalf("Complete: %v", err)
	}
}

package memstore_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

const (
	lease     = 10 * time.Second
	retention = time.Hour
)

// inTime runs body as a parallel test in a bubble of its own, where time passes only when
// the body sleeps.
func inTime(t *testing.T, body func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, body)
}

// operation is an ID with a fingerprint and one owner, and the requests that they make.
type operation struct {
	id          reprise.ID
	fingerprint reprise.Fingerprint
	owner       reprise.Owner
}

func newOperation() operation {
	return operation{id: reprise.ID(numbered(1)), fingerprint: reprise.Fingerprint{1}, owner: reprise.NewOwner()}
}

// by returns the same operation of another owner.
func (o operation) by(owner reprise.Owner) operation {
	o.owner = owner
	return o
}

func (o operation) claim() reprise.ClaimRequest {
	return reprise.ClaimRequest{ID: o.id, Owner: o.owner, Fingerprint: o.fingerprint, Lease: lease, Retention: retention, Takeover: true}
}

func (o operation) complete(payload string) reprise.CompleteRequest {
	return reprise.CompleteRequest{ID: o.id, Owner: o.owner, Payload: []byte(payload), Retention: retention}
}

func (o operation) renew() []reprise.RenewRequest {
	return []reprise.RenewRequest{{ID: o.id, Owner: o.owner, Lease: lease}}
}

// numbered returns 32 bytes that differ in every n and, for consecutive n, in their
// shard.
func numbered(n int) (b [32]byte) {
	b[0] = byte(n)
	binary.BigEndian.PutUint64(b[8:], uint64(n))
	return b
}

// mustClaim claims and fails the test unless the outcome is the wanted one.
func mustClaim(t *testing.T, s *memstore.Store, r reprise.ClaimRequest, want reprise.Outcome) reprise.ClaimResult {
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

func mustComplete(t *testing.T, s *memstore.Store, r reprise.CompleteRequest) {
	t.Helper()
	if err := s.Complete(t.Context(), r); err != nil {
		t.Fatalf("Complete: %v", err)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}

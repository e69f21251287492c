package labtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// NewClaim returns the claim of a new owner of a new operation.
func NewClaim() store.ClaimRequest {
	r := store.ClaimRequest{Owner: store.NewOwner(), Lease: time.Minute, Takeover: true, Policy: store.Policy{Retention: time.Hour}}
	_, _ = rand.Read(r.ID[:]) // never fails: it ends the program instead
	_, _ = rand.Read(r.Fingerprint[:])
	return r
}

// Rival returns the claim of the same operation by another owner.
func Rival(r store.ClaimRequest) store.ClaimRequest {
	r.Owner = store.NewOwner()
	return r
}

// Completion returns the completion of a claim.
func Completion(r store.ClaimRequest, payload string) store.CompleteRequest {
	return store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte(payload), Policy: r.Policy}
}

// WantClaim claims, and fails the test unless the outcome is want.
func WantClaim(tb testing.TB, st store.Store, r store.ClaimRequest, want store.Outcome) store.ClaimResult {
	tb.Helper()
	ctx, cancel := Call(tb)
	defer cancel()
	got, err := st.Claim(ctx, r)
	if err != nil || got.Outcome != want {
		tb.Fatalf("claim: %v, %v; want %v", got.Outcome, err, want)
	}
	return got
}

// Claimed claims a new operation.
func Claimed(tb testing.TB, st store.Store) store.ClaimRequest {
	tb.Helper()
	r := NewClaim()
	WantClaim(tb, st, r, store.Claimed)
	return r
}

// Completed claims and completes a new operation.
func Completed(tb testing.TB, st store.Store, payload string) store.ClaimRequest {
	tb.Helper()
	r := Claimed(tb, st)
	Must(tb, Complete(tb, st, r, payload))
	return r
}

// Complete completes a claim.
func Complete(tb testing.TB, st store.Store, r store.ClaimRequest, payload string) error {
	tb.Helper()
	ctx, cancel := Call(tb)
	defer cancel()
	return st.Complete(ctx, Completion(r, payload))
}

// Call returns the context of one call.
func Call(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	return context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
}

// Attempt is a granted claim whose handler has begun its transaction.
type Attempt struct {
	*TxStore
	store.ClaimRequest

	Tx *sql.Tx
}

// Begin claims an operation, whose attempt the end of the test releases.
func Begin(tb testing.TB, st *TxStore, r store.ClaimRequest, tx func(context.Context) (*sql.Tx, error)) *Attempt {
	tb.Helper()
	tb.Cleanup(func() { _ = st.Release(context.WithoutCancel(tb.Context()), r.ID, r.Owner) })
	WantClaim(tb, st, r, store.Claimed)
	begun, err := tx(st.Bind(tb.Context(), r.ID, r.Owner))
	Must(tb, err)
	return &Attempt{st, r, begun}
}

// Effect writes an effect, and then executes statements.
func (a *Attempt) Effect(tb testing.TB, statements ...string) {
	tb.Helper()
	for _, s := range append([]string{"INSERT INTO effects (name) VALUES ('first')"}, statements...) {
		Exec(tb, a.Tx, s)
	}
}

// End commits the transaction with the answer.
func (a *Attempt) End(tb testing.TB) error {
	tb.Helper()
	return Complete(tb, a, a.ClaimRequest, "answer")
}

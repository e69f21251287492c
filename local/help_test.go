package repriselocal_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	repriselocal "github.com/reprise-go/reprise/local"
)

// server is the store inside, which counts its claims and may lose its records, as a
// server does in a failover.
type server struct {
	reprise.Store
	claims     atomic.Int64
	onClaim    func(context.Context, reprise.ClaimRequest) (reprise.ClaimResult, error)
	onComplete func(context.Context, reprise.CompleteRequest) error
}

func newServer() *server { return &server{Store: memstore.New()} }

func (s *server) Unwrap() reprise.Store { return s.Store }

func (s *server) loseRecords() { s.Store = memstore.New() }

func (s *server) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	s.claims.Add(1)
	if s.onClaim != nil {
		return s.onClaim(ctx, r)
	}
	return s.Store.Claim(ctx, r)
}

func (s *server) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	if s.onComplete != nil {
		return s.onComplete(ctx, r)
	}
	return s.Store.Complete(ctx, r)
}

// wantClaims demands how many claims reached the server since the last time.
func (s *server) wantClaims(t *testing.T, want int64) {
	t.Helper()
	if got := s.claims.Swap(0); got != want {
		t.Errorf("%d claims reached the server, want %d", got, want)
	}
}

func open(tb testing.TB, inner reprise.Store, c repriselocal.Config) *repriselocal.Store {
	tb.Helper()
	s, err := repriselocal.New(inner, c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

const retention = time.Hour

func request(key byte) reprise.ClaimRequest {
	return reprise.ClaimRequest{
		ID: reprise.ID{key}, Owner: reprise.NewOwner(), Fingerprint: reprise.Fingerprint{1}, Lease: time.Minute, Retention: retention,
	}
}

// rival returns another claim of the same operation.
func rival(r reprise.ClaimRequest) reprise.ClaimRequest {
	r.Owner = reprise.NewOwner()
	return r
}

func claim(tb testing.TB, s reprise.Store, r reprise.ClaimRequest, want reprise.Outcome) reprise.ClaimResult {
	tb.Helper()
	got, err := s.Claim(tb.Context(), r)
	if err != nil || got.Outcome != want {
		tb.Fatalf("claim answered %v, %v; want %v", got.Outcome, err, want)
	}
	return got
}

func replay(tb testing.TB, s reprise.Store, r reprise.ClaimRequest, want string) {
	tb.Helper()
	if got := claim(tb, s, rival(r), reprise.Completed); string(got.Payload) != want {
		tb.Fatalf("replayed %q, want %q", got.Payload, want)
	}
}

// warm replays until the record is in the cache.
func warm(tb testing.TB, s reprise.Store, r reprise.ClaimRequest, want string) {
	tb.Helper()
	replay(tb, s, r, want)
	replay(tb, s, r, want)
}

func completion(r reprise.ClaimRequest, payload string) reprise.CompleteRequest {
	return reprise.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte(payload), Retention: r.Retention}
}

func complete(tb testing.TB, s reprise.Store, r reprise.ClaimRequest, payload string) {
	tb.Helper()
	if err := s.Complete(tb.Context(), completion(r, payload)); err != nil {
		tb.Fatalf("complete: %v", err)
	}
}

// run claims and completes.
func run(tb testing.TB, s reprise.Store, r reprise.ClaimRequest, payload string) {
	tb.Helper()
	claim(tb, s, r, reprise.Claimed)
	complete(tb, s, r, payload)
}

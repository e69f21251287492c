package labtest

import (
	"context"
	"os"
	"syscall"

	"github.com/reprise-go/reprise/core/store"
)

// Points are where a [Mortal] process dies: its store knows all but the second, which its
// function passes itself.
var Points = []string{"after claim", "mid effect", "before complete", "after complete"}

// Mortal is a store in a database of SQL, of a process that kills itself at a point of an
// attempt.
type Mortal struct {
	TransactorStore

	Point string // empty: nowhere
}

// Pass kills the process if it dies at this point.
func (m *Mortal) Pass(point string) {
	if m.Point == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// Claim implements [store.Store].
func (m *Mortal) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	got, err := m.TransactorStore.Claim(ctx, r)
	if err == nil && got.Outcome == store.Claimed {
		m.Pass("after claim")
	}
	return got, err
}

// Complete implements [store.Store].
func (m *Mortal) Complete(ctx context.Context, r store.CompleteRequest) error {
	return m.complete(ctx, r, m.TransactorStore.Complete)
}

func (m *Mortal) complete(ctx context.Context, r store.CompleteRequest, complete func(context.Context, store.CompleteRequest) error) error {
	m.Pass("before complete")
	err := complete(ctx, r)
	if err == nil {
		m.Pass("after complete")
	}
	return err
}

// Transaction implements [store.Transactor].
func (m *Mortal) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	ctx, tx := m.TransactorStore.Transaction(ctx, id, owner)
	return ctx, &mortalTx{tx, m}
}

// mortalTx is the transaction of an attempt of a Mortal store.
type mortalTx struct {
	store.Transaction

	store *Mortal
}

// Commit implements [store.Transaction].
func (t *mortalTx) Commit(ctx context.Context, r store.CompleteRequest) error {
	return t.store.complete(ctx, r, t.Transaction.Commit)
}

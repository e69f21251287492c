// Package lazytx gives the handlers of attempts a transaction of the database, which
// begins when the handler asks for it and ends with its attempt.
//
// The claim has been committed. The transaction ends with
// the ordinary conditional completion of the record and COMMIT. Where another attempt has
// the record by then, everything is rolled back, so that a stale owner commits nothing.
package lazytx

import (
	"context"
	"fmt"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// Transactions are those of the handlers of one store.
type Transactions struct {
	Name    string        // of the database, in error texts; a handler asks by it
	Timeout time.Duration // how long a transaction may last
	Slots   *slots.Slots  // how many there are at once; nil: as many as handlers ask for

	// Open begins a transaction of an attempt. Where it fails, it leaves nothing behind.
	Open func(ctx context.Context, id store.ID, owner store.Owner) (Session, error)

	// Find finds out whether a Commit that failed with ErrUnknown was executed, and makes
	// sure that it is not executed later if it was not. It follows End.
	Find func(ctx context.Context, id store.ID, owner store.Owner) error
}

// Session is the connection of a transaction that has begun.
type Session interface {
	// Refuse makes the further calls of the handler fail. It does not wait.
	Refuse()

	// Expire ends the transaction, which outlasted its time, during its use. It reports
	// whether the connection may be given back with it, and then returns the error of a
	// Rollback. Otherwise Rollback follows.
	Expire() (over bool, err error)

	// Commit and Rollback are those of [store.Transaction]. End follows. A transaction that
	// the server ended, as after a deadlock or with the connection, is not [EndedByHandler].
	Commit(ctx context.Context, r *store.CompleteRequest) error
	Rollback(ctx context.Context) error

	// End gives the connection back to the pool, or closes it if its transaction has not
	// ended. It calls back once that is done, which may be after it has returned.
	End(back func())
}

// Usage counts the transactions that are open, and the handlers that wait for one.
func (s *Transactions) Usage() []store.Usage { return s.Slots.Usage() }

// key is the key of the transaction in the handler's context.
type key struct{ name string }

// Bind returns the transaction of an attempt, and the context with which its handler
// finds it.
func (s *Transactions) Bind(ctx context.Context, id store.ID, owner store.Owner) (context.Context, *Transaction) {
	t := &Transaction{all: s, id: id, owner: owner}
	t.attempt, _ = reprise.AttemptFrom(ctx)
	return context.WithValue(ctx, key{s.Name}, t), t
}

// Begin returns the session of the transaction of the attempt that ctx belongs to, and
// begins it at its first call. ctx may be the context of the handler's framework.
func Begin(ctx context.Context, name string) (Session, error) {
	t := of(ctx, name)
	if t == nil {
		return nil, fmt.Errorf("%w: %s: this context has no transaction: the route has no middleware, or the policy of its attempt is not Transactional, or the request has no key", store.ErrInvalid, name)
	}
	return t.begin(ctx)
}

// of returns the transaction of the attempt that ctx belongs to, or nil. An attempt
// inside of another one, by any engine, has not the transaction of that: its record would
// say that effects are done which the other may still roll back.
func of(ctx context.Context, name string) *Transaction {
	t, ok := ctx.Value(key{name}).(*Transaction)
	if run, found := store.RunContext(ctx); !ok && found {
		t, ok = run.Value(key{name}).(*Transaction)
	}
	if attempt, _ := reprise.AttemptFrom(ctx); !ok || attempt != t.attempt {
		return nil
	}
	return t
}

package store

import (
	"context"

	"github.com/reprise-go/reprise/core/internal/text"
)

// The abilities below are optional. [As] finds them in a [Store], also in one that is
// wrapped by decorators.

// As returns st as a value that has the ability T. ok is false if st lacks it:
//
//	inspector, ok := store.As[store.Inspector](st)
//
// A decorator (see [Store]) has the abilities of the store that it wraps and no others.
// As looks for T from the outside in, so that a decorator may intercept an ability by
// implementing it; one that implements an ability that the wrapped store lacks is
// skipped.
func As[T any](st Store) (ability T, ok bool) {
	ability, ok = st.(T)
	if decorator, wraps := st.(interface{ Unwrap() Store }); wraps {
		inner, has := As[T](decorator.Unwrap())
		if !ok || !has {
			return inner, has
		}
	}
	return ability, ok
}

// A Transactor gives the handlers of attempts a transaction of its database, in which
// they write their effects, and commits it together with the completion, or not at all.
type Transactor interface {
	// Transacts returns nil if the store can give handlers transactions, as it is
	// configured, and otherwise ErrInvalid with the reason. It does not contact the server.
	Transacts() error

	// Transaction returns the transaction of an attempt, whose claim was granted and is
	// committed, and the context with which its handler finds it. It does not contact the
	// server: the transaction begins when the handler asks for it.
	Transaction(ctx context.Context, id ID, owner Owner) (context.Context, Transaction)
}

// A Transaction is that of one attempt. The engine calls Close once, and after that, if
// the handler had begun it, one of Commit and Rollback, once. The handler may call its
// own part at any time, from other goroutines.
type Transaction interface {
	// Close takes the transaction away from the handler, whose further calls fail, and
	// reports whether it was begun.
	Close() (begun bool)

	// Commit completes the record, as [Store.Complete] does, in the transaction, and commits
	// it. The completion is conditional on the owner: the effects of an attempt that was
	// taken over never commit. Whatever it returns, the transaction has ended. The errors
	// are
	//
	//	ErrLeaseLost      rolled back: the record is not this owner's any more
	//	ErrNotApplied     rolled back, for another reason; the record is as it was
	//	ErrMisconfigured  the handler ended the transaction itself: its effects may be permanent
	//
	// After any other error the transaction may have been committed, with the record.
	Commit(ctx context.Context, r CompleteRequest) error

	// Rollback undoes the effects. ErrMisconfigured says what it does of Commit. If it fails
	// in another way, the store has closed the connection, and the server undoes them when
	// it notices that.
	Rollback(ctx context.Context) error
}

// A Waiter signals that an ID may have changed, sooner than polling would find out. The
// signal is a hint: it may come late, twice, or never, and the caller always claims
// again.
type Waiter interface {
	// Watch starts to listen before it returns. The channel receives a value, or is
	// closed, when id may have changed. stop ends the watch; it does not block, and may
	// be called more than once. An error means that there will be no hint, not that the
	// store is unreachable.
	Watch(ctx context.Context, id ID) (changed <-chan struct{}, stop func(), err error)
}

// A Purger deletes records that are no longer seen, and the payloads of those whose
// retention has ended and whose horizon has not, in batches of at most limit (1 to
// 100,000). It never deletes a record that is live or was claimed again meanwhile. It
// returns how many records it changed; fewer than limit means that none is left.
type Purger interface {
	Purge(ctx context.Context, limit int) (purged int, err error)
}

// A Maintainer has recurring work while an engine uses it, such as a purge. The engine
// calls Maintain with its first operation, or when its metrics are first read
// (Engine.Stuck of package reprise), in a separate goroutine. Maintain returns soon after
// ctx has ended, and Close of the engine waits for that. Several engines, in one process
// or in many, may call it at once.
type Maintainer interface {
	Maintain(ctx context.Context)
}

// A Checker examines the server's configuration and reports settings that would break a
// guarantee. An error means that it could not examine it; no findings means that
// everything is in order.
type Checker interface {
	Check(ctx context.Context) ([]Finding, error)
}

// A Counter counts all records, in seconds where there are a million. It counts those
// that were completed where they are, and reads only the others.
type Counter interface {
	// Count returns how many of the visible records are completed or expired, and calls
	// open with each other one, as a listing shows it, perhaps more than once. It leaves out
	// those of [ProbeLabel]. A record that changes meanwhile may be missing, counted twice
	// or out of date. After an error the rest was not read.
	Count(ctx context.Context, open func(*Record)) (map[LabelState]int, error)
}

// LabelState is a label and a state of records that a [Counter] counts.
type LabelState struct {
	Label string
	State RecordState // StateCompleted or StateExpired
}

// A Surveyor looks beyond its own records: a listing of the wrong prefix, schema or table
// finds no record, which looks like a store without trouble.
type Surveyor interface {
	// Elsewhere returns the names of other namespaces of the server that hold records, ten
	// at most: prefixes, or tables of databases. It is for people, and bounds how much it
	// looks at, so it may miss some.
	Elsewhere(ctx context.Context) ([]string, error)
}

// A Meter reports how much a store uses of its bounded resources, for the statistics of
// an engine and for metrics. It does not contact the server, and is quick.
type Meter interface {
	Usage() []Usage
}

// Usage is how much of one resource a store uses in this process.
type Usage struct {
	Name    string // stable, short and in lower case: "slots", "connections", "records", "bytes"
	Used    int64
	Limit   int64 // 0: none that the store knows
	Waiting int64 // callers that wait for some of it
}

// Finding is one problem that a [Checker] found.
type Finding struct {
	Code     string   // stable and short, such as "eviction-policy"
	Severity Severity // how bad it is
	Detail   string   // for a person: the finding, the guarantee that it breaks, and the remedy
}

// Severity grades a [Finding].
type Severity uint8

// The grades of a finding.
const (
	Warning Severity = iota + 1 // the guarantees hold, at a cost or with less margin than they should
	Unsafe                      // a guarantee does not hold on this server
)

// String returns the severity as it appears in logs.
func (s Severity) String() string { return text.Name(severityNames[:], int(s)) }

var severityNames = [...]string{Warning: "warning", Unsafe: "unsafe"}

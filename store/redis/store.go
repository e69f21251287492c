package repriseredis

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// Store keeps records in Redis. It is a [store.Store], [store.Waiter],
// [store.Inspector] and [store.Checker]; Redis itself deletes records whose retention
// has ended. All methods are safe for concurrent use. The caller owns the client: the
// store never closes it. [New] and [Open] make stores; the zero value is not usable.
type Store struct {
	client redis.UniversalClient
	config Config
	options

	mu      sync.Mutex
	nodes   map[string]*node // the servers, by their addresses
	watches listeners
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
	_ store.Counter   = (*Store)(nil)
	_ store.Checker   = (*Store)(nil)
	_ store.Surveyor  = (*Store)(nil)
	_ store.Meter     = (*Store)(nil)
)

// New returns a store. It does not contact the server; [Open] does. The error is
// [store.ErrInvalid] when the client is nil or a field of c is out of range, and
// [store.ErrMisconfigured] when the guarantees cannot hold with a client of this type
// or with these options.
func New(client redis.UniversalClient, c Config) (*Store, error) {
	c.AckTimeout = cmp.Or(c.AckTimeout, defaultAckTimeout)
	o, err := optionsOf(client)
	if err == nil {
		err = c.validate(o)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, config: c, options: o, nodes: make(map[string]*node)}
	s.watches.timeout, s.watches.cluster, s.watches.byServer = confirmTimeout, o.cluster != nil, make(map[*redis.Client]*listener)
	return s, nil
}

// Open is [New] followed by [Store.Check] and a trial of every operation on short-lived
// probe records. The error is [store.ErrMisconfigured] for a server on which a guarantee
// does not hold or that refuses an operation. When the server does not answer, it is the
// error of the call that failed, such as [store.ErrUnavailable]. Warnings are not errors:
// they go to [Config.Logger].
func Open(ctx context.Context, client redis.UniversalClient, c Config) (*Store, error) {
	s, err := New(client, c)
	if err == nil {
		err = probe.Judge(ctx, "redis", cmp.Or(c.Logger, slog.Default()), s)
	}
	if err == nil {
		err = s.probe(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Claim implements [store.Store], mostly by two commands in one write. A claim that
// finds a record in progress, a takeover, a repeated claim by the same owner and a replay
// within a horizon need a script, and so a second round trip.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	n := &nativeClaim{request: r}
	c := &n.command
	c.script, c.key = record.ClaimScript, s.key(r.ID)
	n.prepare()
	answer, err := s.runOne(ctx, c)
	switch {
	case err != nil:
		return store.ClaimResult{}, err
	case c.claim != nil: // no script was needed
		return n.result, nil
	}
	result, ok := record.ParseClaim(answer)
	if !ok {
		return store.ClaimResult{}, errUnexpected
	}
	return result, nil
}

// Complete implements [store.Store] in one command. It succeeds also while memory is
// full. The error is [store.ErrFull] for a payload that a limit of the server never lets
// pass: see the finding payload-limit of [Store.Check].
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &command{script: record.CompleteScript, key: s.key(r.ID), bothKeys: r.Horizon > 0, payload: r.Payload, span: record.CompletedSpan(r.Remembered())}
	c.fixed = record.AppendExpected(c.buf[:0], &r)
	c.head = record.AppendCompleted(c.buf[len(c.fixed):len(c.fixed)], &r)
	_, err := s.runScript(ctx, c, &c.fixed, &c.head, &c.span, &c.payload)
	return err
}

// Release implements [store.Store] in one command. It does not wait for replicas: if a
// failover undoes a release, the claim lapses when its lease ends.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	c := &command{script: record.ReleaseScript, key: s.key(id)}
	c.fixed = append(c.buf[:0], owner[:]...)
	_, err := s.runScript(ctx, c, &c.fixed)
	return err
}

// Unknown implements [store.Store] in one command. It succeeds also while memory is
// full.
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &command{script: record.UnknownScript, key: s.key(r.ID), payload: blob(r.Reason)}
	c.fixed = append(c.buf[:0], r.Owner[:]...)
	_, err := s.runScript(ctx, c, &c.fixed, &c.payload)
	return err
}

// Renew implements [store.Store] in one pipeline, or one for each node of a cluster. An
// entry that failed while others succeeded answers [store.RenewBusy], so that a node that
// is down costs no leases on other nodes. When all entries failed, Renew returns the
// error of the first one.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	if len(rs) == 0 {
		return nil, nil
	}

	commands := s.runAll(ctx, len(rs), func(c *command, i int) {
		c.script, c.key = record.RenewScript, s.key(rs[i].ID)
		c.fixed = record.AppendOwned(c.buf[:0], rs[i].Owner, rs[i].Lease)
		c.callScript(&c.fixed)
	})

	answers := make([]store.RenewStatus, len(rs))
	for i := range commands {
		answers[i] = commands[i].renewed()
	}
	if !slices.ContainsFunc(answers, func(a store.RenewStatus) bool { return a != store.RenewBusy }) {
		return nil, commands[0].err
	}
	return answers, nil
}

// renewed reads the answer of renew.lua.
func (c *command) renewed() store.RenewStatus {
	switch {
	case errors.Is(c.err, store.ErrLeaseLost):
		return store.RenewLost
	case c.err != nil:
		return store.RenewBusy
	case c.reply()[0] == record.TagFinished:
		return store.RenewCompleted
	default:
		return store.Renewed
	}
}

// Inspect implements [store.Inspector] in one command, at the primary.
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	found, err := s.inspect(ctx, "payload", nil, id)
	switch {
	case err != nil:
		return store.Record{}, err
	case len(found) == 0:
		return store.Record{}, store.ErrNotFound
	}
	return found[0], nil
}

// Resolve implements [store.Inspector] in one command. A record that it completes has no
// owner: if its last attempt comes back, it gets ErrLeaseLost. If a reply was lost and
// the repetition finds the record changed, the error is ErrUnknown, because this call may
// have changed it: inspect the record again.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &command{script: record.ResolveScript, key: s.key(id), payload: r.Payload}
	c.fixed = record.AppendResolution(c.buf[:0], &r)
	answer, err := s.runScript(ctx, c, &c.fixed, &c.payload)
	switch {
	case err != nil:
		return err
	case answer[0] == record.TagNone && c.uncertain:
		return fail(store.ErrUnknown, errors.New("the record has changed, perhaps by this call, whose first reply was lost; inspect it again"))
	case answer[0] == record.TagNone:
		return store.ErrRecordChanged
	}
	return nil
}

// Watch implements [store.Waiter] with sharded pub/sub. The first watch opens one
// connection to each server that is watched; it stays until [Store.Close]. The error is
// [store.ErrUnavailable] when the server does not confirm the subscription within 100 ms,
// for example because the user may not use the channel. For the next ten seconds, watches
// of that server then fail at once.
func (s *Store) Watch(ctx context.Context, id store.ID) (changed <-chan struct{}, stop func(), err error) {
	key := s.key(id)
	node, err := s.serverFor(ctx, key)
	if err != nil {
		return nil, nil, readError(err)
	}
	return s.watches.watch(ctx, node, key)
}

// Close ends all watches, which are notified, and waits until their goroutines have
// ended; later watches fail with [store.ErrClosed]. The client stays open, and all
// other methods keep working. Close may be called more than once.
func (s *Store) Close() error {
	s.watches.close()
	return nil
}

// Usage implements [store.Meter]: it counts the connections of the client that are in
// use.
func (s *Store) Usage() []store.Usage {
	return []store.Usage{{Name: "connections", Used: inUse(s.client)}}
}

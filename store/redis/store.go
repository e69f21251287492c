package repriseredis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// Store keeps records in Redis. It is a [reprise.Store], [reprise.Waiter], [reprise.Inspector] and [reprise.Checker]; Redis deletes
// what is past its retention by itself. All methods are safe for concurrent use. The client stays the caller's: the store
// never closes it.
type Store struct {
	client     redis.UniversalClient
	prefix     string
	durability Durability
	ackTimeout time.Duration
	options    options
	broken     error     // why nothing can work, nil when it can
	combiner   *combiner // nil: every command goes by itself

	watches watches
}

var (
	_ reprise.Store     = (*Store)(nil)
	_ reprise.Waiter    = (*Store)(nil)
	_ reprise.Inspector = (*Store)(nil)
	_ reprise.Checker   = (*Store)(nil)
)

// New returns a store with the zero [Config]. With a client that cannot work, such as nil or a redis.Ring, every call of the
// store fails with [reprise.ErrMisconfigured] and says why; [NewWithConfig] says it at once. It does not talk to the server.
func New(client redis.UniversalClient) *Store {
	s, err := NewWithConfig(client, Config{})
	if err != nil {
		return &Store{broken: err}
	}
	return s
}

// NewWithConfig returns a store, or [reprise.ErrMisconfigured] when c or the client cannot work. It does not talk to the server.
func NewWithConfig(client redis.UniversalClient, c Config) (*Store, error) {
	c = c.withDefaults()
	o, err := optionsOf(client)
	if err != nil {
		return nil, err
	}
	if err := c.validate(o); err != nil {
		return nil, err
	}
	s := &Store{client: client, prefix: c.Prefix, durability: c.Durability, ackTimeout: c.AckTimeout, options: o}
	if !c.NoCombining && !o.clusterClient {
		s.combiner = newCombiner(s.transmit)
	}
	return s, nil
}

// Open is NewWithConfig in strict mode: it also checks the server, and refuses with [reprise.ErrMisconfigured] one on which a
// guarantee does not hold. Warnings do not keep it from starting; [Store.Check] returns them.
func Open(ctx context.Context, client redis.UniversalClient, c Config) (*Store, error) {
	s, err := NewWithConfig(client, c)
	if err != nil {
		return nil, err
	}
	findings, err := s.Check(ctx)
	if err != nil {
		return nil, err
	}
	if err := refuse(findings); err != nil {
		return nil, err
	}
	return s, nil
}

// Claim implements [reprise.Store] in one command.
func (s *Store) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if err := s.admit(r.Validate()); err != nil {
		return reprise.ClaimResult{}, err
	}
	c := &command{script: claimScript, wait: true}
	s.prepare(ctx, c, r.ID, appendClaim(c.room[:0], &r))
	answer, err := s.runOne(ctx, c)
	if err != nil {
		return reprise.ClaimResult{}, err
	}
	result, ok := parseClaim(answer)
	if !ok {
		return reprise.ClaimResult{}, fail(reprise.ErrUnknown, errOdd)
	}
	return result, nil
}

// Complete implements [reprise.Store] in one command. It works while memory is full.
func (s *Store) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	if err := s.admit(r.Validate()); err != nil {
		return err
	}
	c := &command{script: completeScript, wait: true}
	c.carry(r.Payload)
	s.prepare(ctx, c, r.ID, appendOwned(c.room[:0], r.Owner, r.Retention))
	answer, err := s.runOne(ctx, c)
	if err != nil {
		return err
	}
	switch answer[0] {
	case tagDone:
		return nil
	case tagLost:
		return reprise.ErrLeaseLost
	default:
		return fail(reprise.ErrUnknown, errOdd)
	}
}

// Release implements [reprise.Store] in one command. It does not wait for replicas: a release that a failover undoes is a
// claim that lapses.
func (s *Store) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	if err := s.admit(nil); err != nil {
		return err
	}
	c := &command{script: releaseScript}
	s.prepare(ctx, c, id, append(c.room[:0], owner[:]...))
	answer, err := s.runOne(ctx, c)
	if err == nil && answer[0] != tagChanged && answer[0] != tagNone {
		err = fail(reprise.ErrUnknown, errOdd)
	}
	return err
}

// admit refuses a call of a store that cannot work, or with a request that is invalid.
func (s *Store) admit(invalid error) error {
	if s.broken != nil {
		return s.broken
	}
	return invalid
}

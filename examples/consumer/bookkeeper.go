package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// payment is a message.
type payment struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
}

// booked is the result of a payment.
type booked struct {
	Balance int64 `json:"balance"`
}

var (
	errInsufficient = errors.New("insufficient funds")
	errUnreadable   = errors.New("the message is not a payment")
)

// results encodes the results of payments. Records contain the names: do not change them.
var results = job.NamedErrors[booked](nil, map[string]error{
	"insufficient-funds": errInsufficient, "unreadable": errUnreadable,
})

// bookkeeper books payments.
type bookkeeper struct {
	engine          *reprise.Engine
	dead            deadLetters
	heartbeat, work time.Duration
	retention       time.Duration // longer than the time in which a message may be delivered again
	slots           chan struct{} // one for each worker
	running         sync.WaitGroup
}

// take starts to work on a message as soon as a worker is free. It is called for one
// message after the other, so JetStream sends no more than the workers can take.
func (b *bookkeeper) take(msg jetstream.Msg) {
	b.slots <- struct{}{}
	b.running.Go(func() {
		defer func() { <-b.slots }()
		b.consume(msg)
	})
}

// consume works on a delivery of a message.
func (b *bookkeeper) consume(msg jetstream.Msg) {
	ctx, id := context.Background(), msg.Headers().Get(jetstream.MsgIDHeader)
	fingerprint := store.FingerprintOf([]byte(id), msg.Data())
	stop := b.keepAlive(msg)
	done, err := job.Do(ctx, b.engine, reprise.Operation{
		// Another consumer of this stream needs another scope, or one of the two would get the
		// result of the other.
		Scope: "bookkeeping",

		// The publisher's ID of the message, not its number in the stream: a message that is
		// published twice has two numbers.
		Key: id, Fingerprint: fingerprint,

		// A duplicate that comes after the retention, but within a year, is acknowledged
		// and does not run.
		Retention: b.retention, Horizon: 365 * 24 * time.Hour,
		Label: "bookkeeping", Transactional: true,
	}, results, func(ctx context.Context) (booked, error) {
		if b.work > 0 {
			<-time.After(rand.N(b.work)) //nolint:gosec // it need not be secret
		}
		return book(ctx, id, msg.Data())
	})
	stop()
	log := slog.With(slog.String("id", id), slog.Bool("replayed", done.Replayed), slog.Any("error", err))
	if err := b.settle(ctx, msg, fingerprint, err); err != nil {
		log.Warn("not settled: it is delivered again", slog.Any("settling", err))
	}
}

// book books a payment, in the transaction that also has its record.
func book(ctx context.Context, id string, message []byte) (booked, error) {
	var p payment
	if err := json.Unmarshal(message, &p); err != nil {
		return booked{}, job.Keep(fmt.Errorf("%w: %w", errUnreadable, err))
	}
	tx, err := reprisepg.Tx(ctx)
	if err != nil {
		return booked{}, err
	}
	var balance int64
	if err := tx.QueryRow(ctx, `SELECT balance FROM accounts WHERE id = $1 FOR UPDATE`, p.Account).Scan(&balance); err != nil {
		return booked{}, fmt.Errorf("account %s: %w", p.Account, err) // it may still be opened: the message comes again
	}
	if balance += p.Amount; balance < 0 {
		return booked{}, job.Keep(fmt.Errorf("account %s: %w", p.Account, errInsufficient)) // keeps the refusal
	}
	if _, err := tx.Exec(ctx, `UPDATE accounts SET balance = $2 WHERE id = $1`, p.Account, balance); err != nil {
		return booked{}, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO entries (message, account, amount) VALUES ($1, $2, $3)`, id, p.Account, p.Amount)
	return booked{Balance: balance}, err
}

// keepAlive tells JetStream, until stop is called, that the message is being worked on.
// Without it, a message that takes longer than AckWait is delivered again; Do answers
// that delivery with InProgress, which costs one round trip.
func (b *bookkeeper) keepAlive(msg jetstream.Msg) (stop func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		beat := time.NewTicker(b.heartbeat)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				_ = msg.InProgress() // if it is lost, the message is delivered again
			case <-done:
				return
			}
		}
	})
	return func() { close(done); ended.Wait() }
}

// settle settles a JetStream message for which Do returned err.
//
// An acknowledgement that is lost does no harm: the message is delivered again, and its
// result replayed.
func (b *bookkeeper) settle(ctx context.Context, msg jetstream.Msg, fingerprint store.Fingerprint, err error) error {
	switch action, delay := job.SettlementOf(err); action {
	case job.Ack:
		return msg.Ack()
	case job.Park:
		if failed := b.dead.park(ctx, msg, fingerprint, err); failed != nil {
			return errors.Join(fmt.Errorf("no dead letter: %w", failed), msg.NakWithDelay(backoff(msg)))
		}
		return msg.TermWithReason(err.Error()) // JetStream sends an advisory; reprise show shows the record
	default:
		if delay == 0 {
			delay = backoff(msg)
		}
		return msg.NakWithDelay(delay)
	}
}

// backoff grows from 100 ms to a minute with the number of deliveries.
func backoff(msg jetstream.Msg) time.Duration {
	deliveries := uint64(1)
	if info, err := msg.Metadata(); err == nil {
		deliveries = info.NumDelivered
	}
	return min(100*time.Millisecond<<min(deliveries-1, 10), time.Minute)
}

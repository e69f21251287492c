package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-go/reprise/servers"
)

// bookkeeping is the program with its servers.
type bookkeeping struct {
	*worker
	js jetstream.JetStream
	db *pgx.Conn
}

// startOver starts the program over a stream that was made before it, as an operator
// makes one.
func startOver(t *testing.T, policy jetstream.RetentionPolicy, args ...string) *bookkeeping {
	t.Helper()
	queue, database := startNATS(t), servers.StartPostgres(t, "fsync=on").URL()
	b := &bookkeeping{js: newJetStream(t, queue)}
	_, err := b.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "PAYMENTS", Subjects: []string{"payments.>"}, Retention: policy, Duplicates: 100 * time.Millisecond,
	})
	servers.Must(t, err)
	b.worker = &worker{args: append(args, "-nats-url", queue.ClientURL(), "-postgres-url", database)}
	b.start(t)
	b.db = connect(t, database)
	open(t.Context(), t, b.db, 0, 1)
	return b
}

// send publishes a payment to the account outside of the stream's window for duplicates.
func (b *bookkeeping) send(t *testing.T, id string, amount int64) {
	t.Helper()
	data, err := json.Marshal(payment{Account: accountOf(0), Amount: amount})
	servers.Must(t, err)
	var options []jetstream.PublishOpt
	if id != "" {
		options = append(options, jetstream.WithMsgID(id))
	}
	for {
		ack, err := b.js.Publish(t.Context(), "payments.in", data, options...)
		servers.Must(t, err)
		if !ack.Duplicate {
			return
		}
		pause(t.Context(), 20*time.Millisecond) // until the window for duplicates has passed
	}
}

// settled waits until nothing is left to be delivered.
func (b *bookkeeping) settled(t *testing.T) { b.until(t, "messages are left", settled) }

func (b *bookkeeping) redelivered(t *testing.T) {
	b.until(t, "no message is delivered again", func(c *jetstream.ConsumerInfo) bool { return c.NumRedelivered > 0 })
}

func (b *bookkeeping) until(t *testing.T, otherwise string, reached func(*jetstream.ConsumerInfo) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	until(ctx, t, b.js, otherwise, reached)
}

// keeps waits until the server has n messages: it deletes settled ones afterwards.
func (b *bookkeeping) keeps(t *testing.T, n uint64) {
	t.Helper()
	b.until(t, "the stream has another number of messages", func(*jetstream.ConsumerInfo) bool { return b.kept(t, "PAYMENTS") == n })
}

// kept returns how many messages a stream has. No stream has none.
func (b *bookkeeping) kept(t *testing.T, stream string) uint64 {
	t.Helper()
	s, err := b.js.Stream(t.Context(), stream)
	if err != nil {
		return 0
	}
	return s.CachedInfo().State.Msgs
}

// letters returns each dead letter, as its ID, its data and its reason.
func (b *bookkeeping) letters(t *testing.T) (all []string) {
	t.Helper()
	dead, err := b.js.Stream(t.Context(), "PAYMENTS_DEAD")
	servers.Must(t, err)
	for seq := dead.CachedInfo().State.FirstSeq; seq <= dead.CachedInfo().State.LastSeq; seq++ {
		letter, err := dead.GetMsg(t.Context(), seq)
		if err != nil {
			continue // it was removed
		}
		all = append(all, fmt.Sprintf("%s %s %s", letter.Header.Get("Payment-Id"), letter.Data, letter.Header.Get("Reason")))
	}
	return all
}

func (b *bookkeeping) wantBooked(t *testing.T, entries int, balance int64) {
	t.Helper()
	var n int
	var has int64
	err := b.db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM entries), balance FROM accounts WHERE id = $1`, accountOf(0)).Scan(&n, &has)
	if err != nil || n != entries || has != balance {
		t.Errorf("%d entries and a balance of %d (%v), want %d and %d", n, has, err, entries, balance)
	}
}

// Under a retention policy that deletes settled messages, a parked one would be gone. A
// duplicate of a parked message is the same dead letter, one that a person removed is
// parked again, and a duplicate that comes after the retention is neither booked nor
// parked.
func TestParkedMessagesAreKeptUnderEachRetentionPolicy(t *testing.T) {
	t.Parallel()
	for policy, left := range map[jetstream.RetentionPolicy]uint64{
		jetstream.LimitsPolicy: 6, jetstream.WorkQueuePolicy: 0, jetstream.InterestPolicy: 0,
	} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			b := startOver(t, policy, "-retention", "1ms")
			for range 2 {
				b.send(t, "payment-1", 5)
				b.settled(t)
			}
			for range 2 {
				b.send(t, "payment-1", 7)
				b.send(t, "", 9)
				b.settled(t)
			}
			letters := strings.Join(b.letters(t), "\n")
			for _, want := range []string{
				`payment-1 {"account":"account-0","amount":7} reprise: the operation did not run: the key belongs to another operation`,
				` {"account":"account-0","amount":9} reprise: invalid argument: Operation.Key is empty`,
			} {
				if !strings.Contains(letters, want) {
					t.Errorf("there is no dead letter %q", want)
				}
			}
			if n := b.kept(t, "PAYMENTS_DEAD"); n != 2 {
				t.Errorf("%d dead letters, want 2:\n%s", n, letters)
			}
			b.keeps(t, left)
			b.wantBooked(t, 1, opening+5)

			dead, err := b.js.Stream(t.Context(), "PAYMENTS_DEAD")
			servers.Must(t, errors.Join(err, dead.Purge(t.Context())))
			b.send(t, "", 9)
			b.settled(t)
			if letters := b.letters(t); len(letters) != 1 {
				t.Errorf("%d dead letters of a message that was parked again, want 1", len(letters))
			}
		})
	}
}

// A message is not settled before its dead letter is stored.
func TestMessageWhoseDeadLetterIsRefusedIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	b := startOver(t, jetstream.WorkQueuePolicy)
	dead, err := b.js.Stream(t.Context(), "PAYMENTS_DEAD")
	servers.Must(t, err)
	config := dead.CachedInfo().Config
	config.MaxMsgs, config.Discard = 1, jetstream.DiscardNew
	_, err = b.js.UpdateStream(t.Context(), config)
	servers.Must(t, err)
	b.send(t, "", 1)
	b.settled(t)
	b.send(t, "", 2)
	b.redelivered(t)
	b.keeps(t, 1) // the one that was not parked
	config.MaxMsgs = -1
	_, err = b.js.UpdateStream(t.Context(), config)
	servers.Must(t, err)
	b.settled(t)
	if letters := b.letters(t); len(letters) != 2 {
		t.Errorf("dead letters %q, want 2", letters)
	}
}

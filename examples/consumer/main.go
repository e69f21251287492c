// Consumer books payments from a NATS JetStream stream, once each.
//
// JetStream delivers a message at least once: again when its acknowledgement is lost,
// when the work took longer than AckWait, when a consumer died, and when a publisher sent
// it again after the stream's window for duplicates. The key of a payment is its message
// ID, and the row that it books commits together with its record, in one PostgreSQL
// transaction. Kill the process at any moment.
//
// A parked payment is kept in the stream PAYMENTS_DEAD. To process it again, publish it
// with its ID, and delete it from that stream once it is booked.
//
// Without Operation.Transactional, as over Redis, the same program can book a payment
// twice if a process dies, or is paused for longer than its lease, between writing the
// row and the record. docs/guides/consumers.md describes the remedy.
//
//	GOWORK=off go run -C examples/consumer github.com/nats-io/nats-server/v2 -js -p 4222 &
//	GOWORK=off go run -C examples/consumer . -nats-url nats://localhost:4222 -postgres-url postgres://localhost/postgres &
//	psql postgres://localhost/postgres -c "INSERT INTO accounts VALUES ('7', 1000)"
//	GOWORK=off go run -C examples/consumer . -nats-url nats://localhost:4222 -publish payment-1
//
//run:background until "Server is ready"; background until "consuming"; needs postgres; prints "payment-1 is published"
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	reprise "github.com/reprise-go/reprise/core"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

//go:embed schema.sql
var schema string

// options are the command line of the program.
type options struct {
	nats, postgres string
	workers        int
	ackWait        time.Duration // until JetStream delivers a message again
	heartbeat      time.Duration // how often a running payment asks for more time
	retention      time.Duration // how long the result of a payment is kept
	publish        string        // the ID of a payment to publish, instead of consuming
	work           time.Duration // makes payments take up to this long, to watch redeliveries
}

func main() {
	var o options
	flag.StringVar(&o.nats, "nats-url", nats.DefaultURL, "the NATS server, with JetStream")
	flag.StringVar(&o.postgres, "postgres-url", "postgres://127.0.0.1/postgres", "the database, in which the program creates its tables")
	flag.IntVar(&o.workers, "workers", 8, "how many payments run at once; each holds a connection")
	flag.DurationVar(&o.ackWait, "ack-wait", 30*time.Second, "deliver a message again after this time")
	flag.DurationVar(&o.heartbeat, "heartbeat", 10*time.Second, "ask for more time this often; a third of -ack-wait")
	flag.DurationVar(&o.work, "work", 0, "make each payment take up to this long")
	flag.DurationVar(&o.retention, "retention", 7*24*time.Hour, "keep the result of a payment this long: longer than its message may be delivered again")
	flag.StringVar(&o.publish, "publish", "", "publish a payment to account 7 under this message `ID`, and exit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	work := run
	if o.publish != "" {
		work = publishOne
	}
	err := work(ctx, o)
	stop()
	if err != nil {
		slog.Error("consumer", slog.Any("error", err))
		os.Exit(1)
	}
}

// run consumes until ctx ends. Then it takes no more messages, and waits for those that
// it works on.
func run(ctx context.Context, o options) error {
	c, err := pgxpool.ParseConfig(o.postgres)
	if err != nil {
		return err
	}
	c.MaxConns = int32(o.workers) + 2 //nolint:gosec // a number of workers
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return err
	}
	defer pool.Close()
	config := reprisepg.Config{TxTimeout: 10 * time.Second}
	if err := migrate(ctx, pool, config); err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at -postgres-url (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	store, err := reprisepg.Open(ctx, pool, config)
	if err != nil {
		return err
	}
	engine, err := reprise.New(store, reprise.Config{})
	if err != nil {
		return err
	}

	conn, err := dial(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	source, err := subscribe(ctx, js, o)
	if err != nil {
		return err
	}
	dead, err := openDeadLetters(ctx, js)
	if err != nil {
		return err
	}
	b := &bookkeeper{engine: engine, dead: dead, heartbeat: o.heartbeat, work: o.work, retention: o.retention, slots: make(chan struct{}, o.workers)}
	consuming, err := source.Consume(b.take, jetstream.PullMaxMessages(o.workers))
	if err != nil {
		return err
	}
	fmt.Println("consuming")

	<-ctx.Done()
	consuming.Stop() // messages that were fetched but not begun are delivered again
	<-consuming.Closed()
	b.running.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(engine.Close(closing), conn.FlushWithContext(closing)) // the last acknowledgements
}

func dial(o options) (*nats.Conn, error) {
	conn, err := nats.Connect(o.nats, nats.MaxReconnects(-1))
	if err != nil {
		return nil, fmt.Errorf("%w; the program needs NATS with JetStream at -nats-url (GOWORK=off go run -C examples/consumer github.com/nats-io/nats-server/v2 -js)", err)
	}
	return conn, nil
}

// publishOne sends a payment as its publisher does.
func publishOne(ctx context.Context, o options) error {
	conn, err := dial(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if _, err := js.Publish(ctx, "payments.in", []byte(`{"account":"7","amount":500}`), jetstream.WithMsgID(o.publish)); err != nil {
		return err
	}
	fmt.Println(o.publish, "is published")
	return nil
}

// subscribe makes the stream and the consumer that all processes of this program share.
// The number of deliveries is not limited: a message that can never be booked is parked,
// and no other message may be lost because a database was down.
func subscribe(ctx context.Context, js jetstream.JetStream, o options) (jetstream.Consumer, error) {
	stream, err := openStream(ctx, js, jetstream.StreamConfig{
		Name: "PAYMENTS", Subjects: []string{"payments.>"}, Duplicates: 100 * time.Millisecond, // short, so that the example sees duplicates
	})
	if err != nil {
		return nil, err
	}
	return stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "bookkeeping", AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.ackWait, MaxDeliver: -1,
	})
}

// openStream opens a stream, and creates it if it is missing. It does not change the
// configuration of an existing one.
func openStream(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return js.CreateStream(ctx, config)
	}
	return stream, err
}

// migrate creates the missing tables. If several processes start at once, one does so and
// the others wait; the lock ends with the connection.
func migrate(ctx context.Context, pool *pgxpool.Pool, config reprisepg.Config) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	alone := conn.Hijack()
	defer alone.Close(context.WithoutCancel(ctx))
	if _, err := alone.Exec(ctx, `SELECT pg_advisory_lock(hashtext('consumer'))`); err != nil {
		return err
	}
	if _, err := alone.Exec(ctx, schema); err != nil {
		return err
	}
	return reprisepg.Migrate(ctx, pool, config)
}

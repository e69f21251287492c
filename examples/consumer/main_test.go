package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/servers/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

const (
	messages = 300
	accounts = 10
	kills    = 24
	opening  = 1000 // the balance of an account at first
)

// Two consumers are killed again and again while every message is published twice, is
// delivered again while it is worked on, and waits for accounts that are opened late. In
// the end each payment is booked once, or refused once, and none is lost.
func TestKilledAtRandomEachMessageIsBookedOnce(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	queue := startNATS(t)
	database := servers.StartPostgres(t, "fsync=on").URL()

	work, stop := context.WithTimeout(t.Context(), 5*time.Minute) // a busy disk takes one
	defer stop()
	workers := []*worker{
		{args: []string{"-heartbeat", "100ms"}},
		{args: []string{"-heartbeat", "1h"}}, // a message that takes longer than AckWait is delivered again
	}
	for _, w := range workers {
		w.args = append(w.args, "-nats-url", queue.ClientURL(), "-postgres-url", database, "-ack-wait", "300ms", "-work", "500ms")
		w.start(t)
	}
	conn := connect(t, database)
	open(work, t, conn, 0, accounts/2)

	js := newJetStream(t, queue)
	var published sync.WaitGroup
	var publishing atomic.Bool
	publishing.Store(true)
	published.Go(func() {
		defer publishing.Store(false)
		publish(work, t, js)
	})
	for n := 0; (n < kills || publishing.Load()) && work.Err() == nil; n++ {
		pause(work, time.Duration(50+random.IntN(250))*time.Millisecond)
		w := workers[random.IntN(len(workers))]
		w.Kill()
		w.start(t)
		if n == kills/2 {
			open(work, t, conn, accounts/2, accounts)
		}
	}
	published.Wait()
	redelivered := drained(work, t, js)
	for _, w := range workers {
		w.Interrupt(t)
	}
	check(t, conn)
	t.Logf("%d kills, %d deliveries of %d messages", kills, redelivered, 2*messages)
	if redelivered < 2*messages+messages/10 {
		t.Errorf("%d deliveries of %d messages: too little was repeated, so this shows nothing", redelivered, 2*messages)
	}
}

// idOf names a message.
func idOf(n int) string { return fmt.Sprintf("payment-%04d", n) }

// amountOf returns the amount of a message. Every seventh exceeds the balance.
func amountOf(n int) int64 {
	if n%7 == 0 {
		return -1_000_000
	}
	return int64(n % 50)
}

func accountOf(n int) string { return fmt.Sprintf("account-%d", n%accounts) }

// publish sends every message, and again when the window for duplicates has passed.
func publish(ctx context.Context, t *testing.T, js jetstream.JetStream) {
	const behind = 50
	for n := range messages + behind {
		for _, m := range []int{n, n - behind} {
			if m < 0 || m >= messages {
				continue
			}
			data, err := json.Marshal(payment{Account: accountOf(m), Amount: amountOf(m)})
			if err != nil {
				t.Error(err)
				return
			}
			ack, err := js.Publish(ctx, "payments.in", data, jetstream.WithMsgID(idOf(m)))
			if err != nil {
				t.Errorf("publish: %v", err)
				return
			}
			if ack.Duplicate {
				t.Errorf("message %d was published twice within the window", m)
			}
		}
		pause(ctx, 8*time.Millisecond)
	}
}

// drained waits until the consumer has settled every message, and returns how many
// deliveries it took.
func drained(ctx context.Context, t *testing.T, js jetstream.JetStream) (deliveries uint64) {
	t.Helper()
	info := until(ctx, t, js, "messages are left", settled)
	if info.AckFloor.Stream != 2*messages {
		t.Errorf("messages up to number %d are settled, want %d", info.AckFloor.Stream, 2*messages)
	}
	return info.Delivered.Consumer
}

// settled reports whether nothing is left to be delivered.
func settled(c *jetstream.ConsumerInfo) bool { return c.NumPending == 0 && c.NumAckPending == 0 }

// until waits until the consumer has reached a state.
func until(ctx context.Context, t *testing.T, js jetstream.JetStream, otherwise string, reached func(*jetstream.ConsumerInfo) bool) *jetstream.ConsumerInfo {
	t.Helper()
	source, err := js.Consumer(ctx, "PAYMENTS", "bookkeeping")
	servers.Must(t, err)
	for {
		info, err := source.Info(ctx)
		if err != nil {
			t.Fatalf("%s: %v", otherwise, err)
		}
		if reached(info) {
			return info
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// check compares the booked payments with the messages.
func check(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT message, count(*), min(account), sum(amount)::bigint FROM entries GROUP BY message`)
	servers.Must(t, err)
	type entry struct {
		Message string
		Count   int64
		Account string
		Amount  int64
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
	servers.Must(t, err)
	booked := map[string]entry{}
	for _, e := range entries {
		booked[e.Message] = e
	}
	lost, twice, refused := 0, 0, 0
	want := map[string]int64{}
	for n := range messages {
		e, found := booked[idOf(n)]
		switch {
		case amountOf(n) < 0 && !found:
			refused++
			continue
		case !found:
			lost++
		case e.Count != 1:
			twice++
		case amountOf(n) < 0 || e.Account != accountOf(n) || e.Amount != amountOf(n):
			t.Errorf("%s is booked as %+v", idOf(n), e)
		}
		want[accountOf(n)] += amountOf(n)
	}
	if lost > 0 || twice > 0 || len(booked)+refused != messages {
		t.Errorf("of %d messages %d are lost, %d are booked more than once, %d are refused, %d are booked", messages, lost, twice, refused, len(booked))
	}
	for account, sum := range want {
		var balance int64
		if err := conn.QueryRow(t.Context(), `SELECT balance FROM accounts WHERE id = $1`, account).Scan(&balance); err != nil || balance != opening+sum {
			t.Errorf("%s has %d (%v), want %d", account, balance, err, opening+sum)
		}
	}
	var records, answers int64
	err = conn.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE label = 'bookkeeping') FROM reprise_records`).Scan(&records, &answers)
	if err != nil || records != messages || answers != messages {
		t.Errorf("%d records, %d of bookkeeping (%v), want %d", records, answers, err, messages)
	}
}

// open opens accounts.
func open(ctx context.Context, t *testing.T, conn *pgx.Conn, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if _, err := conn.Exec(ctx, `INSERT INTO accounts VALUES ($1, $2)`, accountOf(n), opening); err != nil {
			t.Fatal(err)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	servers.Must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// startNATS starts a NATS server in this process.
func startNATS(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	servers.Must(t, err)
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

func newJetStream(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL())
	servers.Must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	servers.Must(t, err)
	return js
}

// worker is a process of the program under test.
type worker struct {
	args []string
	*program.Process
}

// start starts the program, and waits until it consumes.
func (w *worker) start(t *testing.T) {
	t.Helper()
	w.Process = program.Start(t, w.args...)
	w.Await(t, "consuming")
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

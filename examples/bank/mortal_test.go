package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// The environment of a process of the service.
const (
	mortalStoreURL      = "BANK_TEST_STORE"
	mortalTransactional = "BANK_TEST_TRANSACTIONAL"
	mortalBank          = "BANK_TEST_BANK"
	mortalPlace         = "BANK_TEST_PLACE"
	mortalVisit         = "BANK_TEST_VISIT" // the process dies when it comes to the place so often
)

func TestMain(m *testing.M) {
	if os.Getenv(mortalStoreURL) != "" {
		if err := serveMortal(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(servers.Main{M: m}.Run())
}

// The places at which a process dies: in handlers, and in the reconciler.
const (
	beforeCall       = "before the call"
	afterSend        = "after the request was sent"
	afterAnswer      = "after the bank answered"
	beforeUnknown    = "before the outcome is unknown"
	beforeCompletion = "before the completion"
	afterCompletion  = "after the completion"

	afterQuestion   = "after the bank was asked"
	beforeResolving = "before a record is resolved"
	afterResolving  = "after a record is resolved"
)

var places = [][]string{
	{beforeCall, afterSend, afterAnswer, beforeUnknown, beforeCompletion, afterCompletion},
	{afterQuestion, beforeResolving, afterResolving},
}

// mortal kills its process at a place.
type mortal struct {
	place  string
	visits atomic.Int64 // that are left
}

func (m *mortal) at(place string) {
	if place != m.place || m.visits.Add(-1) != 0 {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // nothing comes after it
}

type mortalRecords struct {
	store.Store
	store.Inspector
	*mortal
}

func (r mortalRecords) Unwrap() store.Store { return r.Store }

func (r mortalRecords) Complete(ctx context.Context, c store.CompleteRequest) error {
	r.at(beforeCompletion)
	err := r.Store.Complete(ctx, c)
	r.at(afterCompletion)
	return err
}

func (r mortalRecords) Unknown(ctx context.Context, u store.UnknownRequest) error {
	r.at(beforeUnknown)
	return r.Store.Unknown(ctx, u)
}

func (r mortalRecords) Resolve(ctx context.Context, id store.ID, s store.Resolution) error {
	r.at(beforeResolving)
	err := r.Inspector.Resolve(ctx, id, s)
	r.at(afterResolving)
	return err
}

type mortalTransport struct {
	http.RoundTripper
	*mortal
}

func (t mortalTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		res, err := t.RoundTripper.RoundTrip(r)
		t.at(afterQuestion)
		return res, err
	}
	t.at(beforeCall)
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { t.at(afterSend) }}
	res, err := t.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err == nil {
		t.at(afterAnswer)
	}
	return res, err
}

// serveMortal is the process: the service over a store and a transport at which it dies.
// It ends when its standard input does.
func serveMortal() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	visits, err := strconv.Atoi(os.Getenv(mortalVisit))
	if err != nil {
		return err
	}
	m := &mortal{place: os.Getenv(mortalPlace)}
	m.visits.Store(int64(visits))
	st, closeStore, err := openRecords(ctx, os.Getenv(mortalStoreURL), os.Getenv(mortalTransactional) == "true")
	if err != nil {
		return err
	}
	defer closeStore()
	inspector, _ := store.As[store.Inspector](st)
	s, err := newService(mortalRecords{st, inspector, m}, os.Getenv(mortalBank), mortalTransport{new(http.Transport), m}, hurried)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	return s.serve(ctx, listener)
}

// openRecords is openStore, or the same for the transactional store.
func openRecords(ctx context.Context, url string, transactional bool) (store.Store, func(), error) {
	if !transactional {
		return openStore(ctx, url)
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = 20 // an attempt has one for as long as it runs
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	if err := reprisepg.Migrate(ctx, pool, reprisepg.Config{}); err != nil {
		return nil, nil, err
	}
	st, err := reprisepg.OpenTransactional(ctx, pool, reprisepg.Config{})
	return st, pool.Close, err
}

// fleet is the processes of the service: one for each list of places. Each dies at one
// place after the other and is started again, and lives after the last one.
type fleet struct {
	t    *testing.T
	env  []string
	live []atomic.Value // the address of each process

	mu   sync.Mutex
	died map[string]int // by place
}

func startFleet(t *testing.T, rounds int, env ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, env: append(os.Environ(), env...), live: make([]atomic.Value, len(places)), died: map[string]int{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for i, list := range places {
		running.Go(func() {
			for range rounds {
				for _, place := range list {
					f.run(ctx, i, place)
				}
			}
			f.run(ctx, i, "")
		})
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return f
}

// run runs a process until it dies at a place, or ctx ends.
func (f *fleet) run(ctx context.Context, i int, place string) {
	if ctx.Err() != nil {
		return
	}
	child := exec.Command(os.Args[0]) //nolint:gosec,noctx // this very program, whose standard input ends it
	child.Env = append(slices.Clip(f.env), mortalPlace+"="+place, mortalVisit+"="+strconv.Itoa(1+rand.IntN(3)))
	child.Stderr = f.t.Output()
	in, errIn := child.StdinPipe()
	out, errOut := child.StdoutPipe()
	if err := cmp.Or(errIn, errOut, child.Start()); err != nil {
		f.t.Error(err)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	line, _ := bufio.NewReader(out).ReadString('\n')
	f.live[i].Store(strings.TrimPrefix(strings.TrimSpace(line), "listening on "))
	_, _ = io.Copy(io.Discard, out)
	err := child.Wait()
	switch killed := child.ProcessState.ExitCode() == -1; {
	case killed && place != "":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.died[place]++
	case err != nil || ctx.Err() == nil:
		f.t.Errorf("a process that was to die %q ended: %v", place, err)
	}
}

// dying reports whether processes still die.
func (f *fleet) dying(rounds int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, list := range places {
		for _, place := range list {
			if f.died[place] < rounds {
				return true
			}
		}
	}
	return false
}

// addr returns the address of any process. It may be dead.
func (f *fleet) addr() string {
	addr, _ := f.live[rand.IntN(len(f.live))].Load().(string)
	return addr
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

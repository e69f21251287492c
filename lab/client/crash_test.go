package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The environment of a shop in a separate process.
const (
	shopRedis  = "REPRISE_LAB_SHOP_REDIS"
	shopPrefix = "REPRISE_LAB_SHOP_PREFIX"
)

// shopLease is short, so that the test is. Everything else is the default.
const shopLease = 3 * time.Second

// serveShop serves orders until the process is killed. The first attempt at an order
// hangs.
func serveShop(redis string) error {
	options, err := goredis.ParseURL(redis)
	if err != nil {
		return err
	}
	store, err := repriseredis.New(goredis.NewClient(options), repriseredis.Config{Prefix: os.Getenv(shopPrefix)})
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Engine: reprise.Config{Lease: shopLease}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the process
	if err != nil {
		return err
	}
	fmt.Println("listens", listener.Addr())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }() // the test has the other end
	return http.Serve(listener, reprisehttp.Middleware(guard, reprisehttp.Unscoped)(counter(os.Stdout)))
}

// counter is a handler whose first attempt at an order hangs, and whose second says its
// number. It writes both to out.
func counter(out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		attempt, _ := reprise.AttemptFrom(r.Context())
		if attempt.Number() == 1 {
			fmt.Fprintln(out, "began", o.Op)
			<-r.Context().Done()
			return
		}
		fmt.Fprintln(out, "took", o.Op)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s at attempt %d", o.Op, attempt.Number())
	})
}

// shopProcess is a process that runs serveShop.
type shopProcess struct {
	addr  string
	cmd   *exec.Cmd
	lines chan string // that it printed, as "began order-00001"
	stdin io.Closer   // until it is closed the process goes on
}

func startShop(t *testing.T, env ...string) *shopProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &shopProcess{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), self), lines: make(chan string, 10_000)}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	})
	t.Cleanup(func() {
		_ = p.stdin.Close()
		reading.Wait()
		_ = p.cmd.Wait()
	})
	p.addr = strings.TrimPrefix(<-p.lines, "listens ")
	return p
}

// The crash of the README, with the default configuration of the client: a process is
// killed while it runs orders, another one goes on, and every call ends with the response
// of the only attempt that finished.
func TestEveryCallSurvivesTheDeathOfAProcess(t *testing.T) {
	t.Parallel()
	env := []string{shopRedis + "=redis://" + servers.Redis.Shared(t).Addr(), shopPrefix + "=" + labtest.RedisPrefix()}
	dies, stays := startShop(t, env...), startShop(t, env...)

	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, dies.addr)
		if err != nil { // as a load balancer would
			return new(net.Dialer).DialContext(ctx, network, stays.addr)
		}
		return conn, nil
	}}
	t.Cleanup(base.CloseIdleConnections)
	transport, err := repriseclient.NewTransport(base, repriseclient.Config{})
	if err != nil {
		t.Fatal(err)
	}
	placed := placeAll(t, &http.Client{Transport: transport})
	for range crashCalls {
		<-dies.lines
	}
	if err := dies.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	placed()
	t.Logf("the last call ended %s after the crash", time.Since(died).Round(time.Second))
	_ = stays.stdin.Close()
	took := make(map[string]int)
	for line := range stays.lines {
		took[line]++
	}
	for line, n := range took {
		if n > 1 {
			t.Errorf("%d times: %s", n, line)
		}
	}
	if len(took) != crashCalls {
		t.Errorf("%d orders were taken, want %d", len(took), crashCalls)
	}
}

const crashCalls = 200

// placeAll places orders, all at a time. The function that it returns waits for them, and
// fails the test unless each ended with the response of the second attempt at it.
func placeAll(t *testing.T, client *http.Client) (wait func()) {
	t.Helper()
	var placing sync.WaitGroup
	ends := make([]string, crashCalls)
	for i := range ends {
		placing.Go(func() {
			got, err := place(t.Context(), client, "http://shop.test", orderOf(i))
			ends[i] = fmt.Sprintf("%d %.60s, %v", got.status, got.body, err)
		})
	}
	return func() {
		t.Helper()
		placing.Wait()
		lost := 0
		for i, end := range ends {
			if end != fmt.Sprintf("201 %s at attempt 2, <nil>", orderOf(i).Op) {
				lost++
				t.Logf("lost: %s", end)
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d calls did not end with the response of their operation", lost, len(ends))
		}
	}
}

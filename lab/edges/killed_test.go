package edges_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The environment of a process that serves, in which TestServedProcess runs.
const (
	servedOn     = "REPRISE_LAB_RPC_REDIS"
	servedPrefix = "REPRISE_LAB_RPC_PREFIX"
)

// TestServedProcess is the server of the next test. Its first attempt at a call hangs
// before its effect.
func TestServedProcess(t *testing.T) {
	redis := os.Getenv(servedOn)
	if redis == "" {
		return
	}
	store := labtest.RedisStore(t, labtest.RedisClient(t, redis), repriseredis.Config{Prefix: os.Getenv(servedPrefix)})
	e := &env{T: t, target: target{start: func(t *testing.T, s *service, scope scopeOf) client {
		t.Helper()
		fmt.Println("listens", startGRPC(t, s, scope), startConnect(t, s, scope))
		return nil
	}}}
	e.serve(setup{store: store, engine: reprise.Config{Lease: 2 * time.Second}, handler: func(ctx context.Context, _ *request) outcome {
		if attempt, _ := reprise.AttemptFrom(ctx); attempt.Number() == 1 {
			fmt.Println("began")
			<-ctx.Done()
			return outcome{}
		}
		fmt.Println("took")
		return outcome{body: []byte("done")}
	}})
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it, or dies
	os.Exit(0)                           // a handler may hang
}

// served is a process that runs TestServedProcess.
type served struct {
	*exec.Cmd

	grpc, connect string        // addresses
	out           *bufio.Reader // further lines
	stdin         io.Closer
}

func startProcess(t *testing.T, env ...string) *served {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &served{Cmd: exec.CommandContext(context.WithoutCancel(t.Context()), self, "-test.run=^TestServedProcess$")}
	p.Env, p.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.stdin.Close()
		_ = p.Wait()
	})
	p.out = bufio.NewReader(out)
	addrs := strings.Fields(strings.TrimPrefix(p.line(t), "listens "))
	p.grpc, p.connect = addrs[0], addrs[1]
	return p
}

// line returns the next line that the process prints.
func (p *served) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestKilledServerLeavesOneEffect kills the process that runs a call. The client waits
// for its lease at another one, and gets the result of the only attempt that finished.
func TestKilledServerLeavesOneEffect(t *testing.T) {
	t.Parallel()
	redis := servers.Redis.Shared(t).Addr()
	eachCaller(t, func(t *testing.T, c caller) {
		env := []string{servedOn + "=" + redis, servedPrefix + "=" + labtest.RedisPrefix()}
		dies, stays := startProcess(t, env...), startProcess(t, env...)
		addr := func(p *served) string {
			if c.native {
				return p.grpc
			}
			return p.connect
		}
		proxy := servers.StartProxy(t, addr(dies))
		client := c.dial(t, proxy.Addr(), callerConfig{Client: repriseclient.Config{}})
		got := make(chan answer, 1)
		go func() { got <- client.call(t.Context(), call{}) }()
		if line := dies.line(t); line != "began" {
			t.Fatalf("the process printed %q", line)
		}
		proxy.Retarget(addr(stays))
		if err := dies.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if line := stays.line(t); line != "took" {
			t.Fatalf("the other process printed %q", line)
		}
		if a := <-got; a.err != nil || string(a.body) != "done" {
			t.Errorf("the client got %+v", a)
		}
		_ = stays.stdin.Close()
		if rest, err := io.ReadAll(stays.out); err != nil || strings.Contains(string(rest), "took") {
			t.Errorf("the other process then printed %q, %v", rest, err)
		}
	})
}

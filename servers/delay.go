package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// DelayLine is a TCP proxy that simulates a network of a certain round trip: every byte
// arrives half a round trip after it was sent. Unlike the delay of a [Proxy], which keeps
// a stream back piece by piece, it does not limit the throughput of a connection.
//
// It is a separate process, because it mostly sleeps: exactly, which takes a thread for
// each stream, and without taking processors from the program that is measured.
type DelayLine struct{ addr string }

// delayLineEnv makes [Main.Run] serve a delay line instead of running tests: its target
// and its delay in one direction.
const delayLineEnv = "REPRISE_TEST_DELAY_LINE"

// StartDelayLine starts a delay line in front of target (host:port) on a free loopback
// port. It ends with the test. A round trip of zero passes everything on at once. The
// test binary needs a TestMain that calls [Main.Run].
func StartDelayLine(tb testing.TB, target string, roundTrip time.Duration) *DelayLine {
	tb.Helper()
	self, err := os.Executable()
	must(tb, err)
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %v", delayLineEnv, target, roundTrip/2), "GOMAXPROCS=64")
	cmd.Stderr = tb.Output()
	alive, err := cmd.StdinPipe() // it ends with the pipe, and so with this process
	must(tb, err)
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = alive.Close()
		_ = cmd.Wait()
	})
	d := &DelayLine{}
	if _, err := fmt.Fscanln(out, &d.addr); err != nil {
		tb.Fatalf("the delay line names no address: %v", err)
	}
	return d
}

// Addr returns the delay line's host:port.
func (d *DelayLine) Addr() string { return d.addr }

// delayed is the part of a delay line in its own process.
type delayed struct {
	target string
	oneWay time.Duration
}

// serveDelayLine serves the delay line of delayLineEnv until standard input ends, and
// returns the exit code.
func serveDelayLine(setting string) int {
	var d delayed
	target, oneWay, _ := strings.Cut(setting, " ")
	var err error
	if d.oneWay, err = time.ParseDuration(oneWay); err != nil {
		fmt.Fprintln(os.Stderr, "delay line:", err)
		return 1
	}
	d.target = target
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "delay line:", err)
		return 1
	}
	fmt.Println(l.Addr())
	go d.accept(l)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// accept serves connections until the process ends.
func (d delayed) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go d.serve(client)
	}
}

func (d delayed) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", d.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var up sync.WaitGroup
	up.Go(func() { d.carry(client, server) })
	d.carry(server, client)
	up.Wait()
}

// carried is a piece of a stream and when it arrives.
type carried struct {
	bytes []byte
	due   time.Time
}

// carry passes one direction of a connection on, each piece when it is due, until it
// ends.
func (d delayed) carry(src, dst net.Conn) {
	pieces := make(chan carried, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		for piece := range pieces {
			sleepPrecisely(time.Until(piece.due))
			_, _ = dst.Write(piece.bytes) // the reader notices a broken connection
		}
	})
	for {
		buf := make([]byte, 16<<10)
		n, err := src.Read(buf)
		if n > 0 {
			pieces <- carried{buf[:n], time.Now().Add(d.oneWay)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	writing.Wait()
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

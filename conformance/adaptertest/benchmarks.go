package adaptertest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/protocol"
)

// Traffic is a kind of request to measure.
type Traffic string

// The kinds of traffic. The handler of each responds with DefaultStatus and DefaultBody.
const (
	NotKeyed Traffic = "not-keyed" // a PUT with a key that is ignored: the cost of framework and handler alone
	Unkeyed  Traffic = "unkeyed"   // a POST without a key
	NewKeys  Traffic = "new-key"   // a POST with a new key each
	Replays  Traffic = "replay"    // a POST with the same key each time
)

// measuredRequests is how many requests an allocation count is the mean of; as many as
// fill pools and maps go before them.
const (
	measuredRequests = 2000
	warmUpRequests   = 500
)

// AllocsPerRequest returns how many allocations one request costs the server at addr,
// framework and handler included, when requests arrive over that many connections at
// once, one by one over each. The target is a path with the default handler of the test
// server, such as "/t/op", behind the middleware or not.
//
// It counts the allocations of the whole process: run the server in this process and no
// other work. The client allocates no memory.
func AllocsPerRequest(tb testing.TB, addr, target string, kind Traffic, connections int) float64 {
	tb.Helper()
	loads := make([]*load, connections)
	for i := range loads {
		loads[i] = newLoad(tb, addr, target, kind)
	}
	send := func(n int) {
		var sending sync.WaitGroup
		for _, l := range loads {
			sending.Go(func() { l.send(n / connections) })
		}
		sending.Wait()
		if tb.Failed() {
			tb.FailNow()
		}
	}
	send(warmUpRequests)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pools
	var before, after runtime.MemStats
	runtime.GC()
	send(warmUpRequests)
	runtime.ReadMemStats(&before)
	send(measuredRequests)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(measuredRequests/connections*connections)
}

// load is a client without allocations: a connection, and the bytes of one request.
type load struct {
	tb      testing.TB
	conn    net.Conn
	request []byte
	kind    Traffic
	digits  []byte // of the key, in request
	last    uint64
	buffer  [4096]byte
}

// theBodyOf64 is the request that figures are given for.
var theBodyOf64 = strings.Repeat("0123456789abcdef", 4)

func newLoad(tb testing.TB, addr, target string, kind Traffic) *load {
	tb.Helper()
	d := net.Dialer{Timeout: defaultPatience}
	conn, err := d.DialContext(tb.Context(), "tcp", addr)
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	l := &load{tb: tb, conn: conn, kind: kind}
	id := suite.NewID()
	key := "key-" + id.Short() + "-0000000000000000"
	c := call{method: "POST", target: target, tenant: "bench", keys: []string{key}, body: theBodyOf64}
	switch kind {
	case NotKeyed:
		c = c.withMethod("PUT")
	case Unkeyed:
		c = c.withKeys()
	case NewKeys, Replays:
	}
	l.request = []byte(c.bytes())
	if kind == NewKeys {
		at := bytes.Index(l.request, []byte(key)) + len(key)
		l.digits = l.request[at-16 : at]
	}
	if kind == Replays { // the first is not a replay
		if err := l.one(false); err != nil {
			tb.Fatal(err)
		}
	}
	return l
}

// send sends n requests, one after the other, until one fails.
func (l *load) send(n int) {
	l.tb.Helper()
	_ = l.conn.SetDeadline(time.Now().Add(time.Minute + time.Duration(n)*10*time.Millisecond))
	for range n {
		if err := l.one(l.kind == Replays); err != nil {
			l.tb.Error(err)
			return
		}
	}
}

var (
	endOfHead = []byte("\r\n\r\n")
	statusOf  = []byte(" " + strconv.Itoa(DefaultStatus) + " ")
	markOf    = []byte("\r\n" + protocol.FieldReplayed + ": true\r\n")
)

// one sends a request and reads its response, which ends with the default body.
func (l *load) one(replayed bool) error {
	if l.digits != nil {
		l.last++
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], l.last)
		hex.Encode(l.digits, b[:])
	}
	if _, err := l.conn.Write(l.request); err != nil {
		return err
	}
	got := 0
	for {
		n, err := l.conn.Read(l.buffer[got:])
		if err != nil {
			return fmt.Errorf("after %q: %w", l.buffer[:got], err)
		}
		got += n
		end := bytes.Index(l.buffer[:got], endOfHead)
		if end < 0 || got < end+len(endOfHead)+len(DefaultBody) {
			continue
		}
		head := l.buffer[:end+2]
		if !bytes.Contains(head, statusOf) || bytes.Contains(head, markOf) != replayed || got != end+len(endOfHead)+len(DefaultBody) {
			return fmt.Errorf("answered %q", l.buffer[:got])
		}
		return nil
	}
}

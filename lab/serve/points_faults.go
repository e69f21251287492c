//go:build reprise_faults

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// A build with the tag reprise_faults has named points at which the process can be told
// to kill or to stop itself. Lines of standard input such as
//
//	mid-effect kill 3
//
// arm a point for its third passage from now. The process writes "at mid-effect" to
// standard output before it does so. The action "none" disarms a point, which the line
// "not at mid-effect" confirms. The line "report now 0" asks for "report" with the number
// of goroutines and the bytes of the heap that are in use. The process ends with its
// standard input.
//
// It also writes a history, a line of JSON for each [Event], to the file that the
// environment variable REPRISE_FAULTS_HISTORY names, and makes the mistake that
// REPRISE_FAULTS_MISTAKE names, to prove that a checker of histories finds it.

// The points.
const (
	afterClaim     = "after-claim"     // the claim is granted, and the engine does not know yet
	midEffect      = "mid-effect"      // the effect is written, and the handler runs on
	beforeComplete = "before-complete" // the handler has ended
	afterComplete  = "after-complete"  // the response is recorded, and the engine does not know yet
	afterSend      = "after-send"      // the response is written to the connection
)

// Event is a line of a history.
type Event struct {
	Kind    string `json:"kind"` // claim, run, renew, end or completed
	ID      string `json:"id,omitempty"`
	Op      string `json:"op,omitempty"` // of a run
	Owner   string `json:"owner"`
	Attempt int    `json:"attempt,omitempty"`
	Fence   uint64 `json:"fence,omitempty"`
	Asked   int64  `json:"asked,omitempty"` // when the claim was sent
	At      int64  `json:"at"`              // in nanoseconds of this machine's clock
	Until   int64  `json:"until,omitempty"` // until when the owner of a claim or renewal may believe that it holds the lease
}

// points are those of this process.
type points struct {
	out     io.Writer
	history *os.File
	mistake string

	mu    sync.Mutex
	armed map[string]armed
}

type armed struct {
	signal syscall.Signal
	left   int
}

// here are the points of the process, for the connections that it accepts.
var here = &points{armed: make(map[string]armed)}

// addPoints puts the points around a backend.
func addPoints(b *Backend, stdout io.Writer) error {
	here.out, here.mistake = stdout, os.Getenv("REPRISE_FAULTS_MISTAKE")
	if name := os.Getenv("REPRISE_FAULTS_HISTORY"); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		here.history = f
		b.closers = append(b.closers, func() { _ = f.Close() })
	}
	go here.listen(os.Stdin)
	b.Store = &pointStore{b.Store, here}
	if effect := b.Effect; effect != nil {
		b.Effect = func(ctx context.Context, op string) error {
			here.note(Event{Kind: "run", Op: op, Owner: hex.EncodeToString(ownerFrom(ctx))})
			if err := effect(ctx, op); err != nil {
				return err
			}
			here.pass(midEffect)
			return nil
		}
	}
	return nil
}

// listen arms points as the lines of in say.
func (p *points) listen(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var point, action string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &point, &action, &n); err != nil {
			continue
		}
		if point == "report" {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			fmt.Fprintf(p.out, "report %d %d\n", runtime.NumGoroutine(), m.HeapAlloc)
			continue
		}
		signal := syscall.SIGKILL
		if action == "stop" {
			signal = syscall.SIGSTOP
		}
		p.mu.Lock()
		if action == "none" {
			delete(p.armed, point)
			fmt.Fprintf(p.out, "not at %s\n", point)
		} else {
			p.armed[point] = armed{signal, n}
		}
		p.mu.Unlock()
	}
	os.Exit(3) // the parent of this process is gone
}

// pass is called at a point.
func (p *points) pass(point string) {
	p.mu.Lock()
	a, found := p.armed[point]
	if !found {
		p.mu.Unlock()
		return
	}
	if a.left--; a.left > 0 {
		p.armed[point] = a
		p.mu.Unlock()
		return
	}
	delete(p.armed, point)
	fmt.Fprintf(p.out, "at %s\n", point)
	p.mu.Unlock()
	_ = syscall.Kill(os.Getpid(), a.signal)
}

// note writes a line of the history. A line is one write, which appends as a whole.
func (p *points) note(e Event) {
	if p.history == nil {
		return
	}
	if e.At == 0 {
		e.At = time.Now().UnixNano()
	}
	line, _ := json.Marshal(e) // every field has a JSON form
	_, _ = p.history.Write(append(line, '\n'))
}

// pointStore is a store with points and a history.
type pointStore struct {
	store.Store
	points *points
}

// Unwrap returns the store below.
func (s *pointStore) Unwrap() store.Store { return s.Store }

// Claim implements [store.Store].
func (s *pointStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	sent := time.Now()
	got, err := s.Store.Claim(ctx, r)
	if err == nil && got.Outcome == store.Claimed {
		s.points.pass(afterClaim)
		s.points.note(Event{
			Kind: "claim", ID: r.ID.String(), Owner: hex.EncodeToString(r.Owner[:]), Attempt: got.Attempt, Fence: got.Fence,
			Asked: sent.UnixNano(), Until: sent.Add(min(r.Lease, max(0, got.Remaining))).UnixNano(),
		})
	}
	return got, err
}

// Renew implements [store.Store].
func (s *pointStore) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	sent := time.Now()
	got, err := s.Store.Renew(ctx, rs)
	for i := range got {
		if err == nil && got[i] == store.Renewed {
			s.points.note(Event{
				Kind: "renew", ID: rs[i].ID.String(), Owner: hex.EncodeToString(rs[i].Owner[:]), Until: sent.Add(rs[i].Lease).UnixNano(),
			})
		}
	}
	return got, err
}

// Complete implements [store.Store].
func (s *pointStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	return s.points.completing(r, func() error { return s.complete(ctx, r) })
}

// completing notes a completion, and passes its points.
func (p *points) completing(r store.CompleteRequest, complete func() error) error {
	e := Event{Kind: "end", ID: r.ID.String(), Owner: hex.EncodeToString(r.Owner[:])}
	p.note(e)
	p.pass(beforeComplete)
	err := complete()
	if err == nil {
		e.Kind, e.At = "completed", 0
		p.note(e)
		p.pass(afterComplete)
	}
	return err
}

// complete completes, or makes a mistake of the kind that tests want to be found.
func (s *pointStore) complete(ctx context.Context, r store.CompleteRequest) error {
	switch s.points.mistake {
	case "unfenced": // an owner that lost its lease gets success
		if err := s.Store.Complete(ctx, r); !errors.Is(err, store.ErrLeaseLost) {
			return err
		}
		return nil
	case "not-stored": // the response of every third key is not recorded
		if r.ID[0]%3 == 0 {
			return nil
		}
	}
	return s.Store.Complete(ctx, r)
}

// Transacts implements [store.Transactor].
func (s *pointStore) Transacts() error { return s.transactor().Transacts() }

// Transaction implements [store.Transactor].
func (s *pointStore) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	ctx, tx := s.transactor().Transaction(ctx, id, owner)
	return ctx, &pointTransaction{tx, s.points}
}

func (s *pointStore) transactor() store.Transactor {
	t, _ := store.As[store.Transactor](s.Store) // [store.As] does not find this one where there is none below
	return t
}

// pointTransaction is a transaction with points and a history.
type pointTransaction struct {
	store.Transaction
	points *points
}

// Commit implements [store.Transaction].
func (t *pointTransaction) Commit(ctx context.Context, r store.CompleteRequest) error {
	return t.points.completing(r, func() error {
		if t.points.mistake != "late-commit" {
			return t.Transaction.Commit(ctx, r)
		}
		r.Payload = bytes.Clone(r.Payload)
		go func() { // the response leaves before the transaction is committed
			time.Sleep(100 * time.Millisecond)
			_ = t.Transaction.Commit(context.WithoutCancel(ctx), r)
		}()
		return nil
	})
}

// Release implements [store.Store].
func (s *pointStore) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	s.points.note(Event{Kind: "end", ID: id.String(), Owner: hex.EncodeToString(owner[:])})
	return s.Store.Release(ctx, id, owner)
}

// Unknown implements [store.Store].
func (s *pointStore) Unknown(ctx context.Context, r store.UnknownRequest) error {
	s.points.note(Event{Kind: "end", ID: r.ID.String(), Owner: hex.EncodeToString(r.Owner[:])})
	return s.Store.Unknown(ctx, r)
}

// pointsOn returns a listener whose connections pass the point after-send.
func pointsOn(l net.Listener) net.Listener { return pointListener{l} }

type pointListener struct{ net.Listener }

func (l pointListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return pointConn{c}, nil
}

type pointConn struct{ net.Conn }

func (c pointConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.HasPrefix(b, []byte("HTTP/1.1 2")) {
		here.pass(afterSend)
	}
	return n, err
}

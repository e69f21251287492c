package repriseredis

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

func TestACursorBelongsToItsStore(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	s := &Store{options: options{single: client}, config: Config{Prefix: "a:"}}
	for _, want := range []position{
		{},
		{Servers: 1 << 63, Node: 16383, Scan: 1<<64 - 1, Next: 5},
		{Scan: 4, Next: 5, After: store.ID(bytes.Repeat([]byte{0xff}, 32))},
	} {
		got, err := s.parseCursor(s.cursor(want))
		if want.Listed = got.Listed; err != nil || got != want {
			t.Errorf("reads %+v, %v; want %+v", got, err, want)
		}
	}

	valid := s.cursor(position{})
	other := redis.NewClient(&redis.Options{DB: 1})
	t.Cleanup(func() { _ = other.Close() })
	for name, text := range map[string]string{
		"of another store":     "memory-1-2-3",
		"without its word":     strings.TrimPrefix(valid, cursorWord),
		"cut":                  valid[:len(valid)-4],
		"longer":               valid + "AAAA",
		"no base64":            valid + "!",
		"nothing":              cursorWord,
		"of another prefix":    (&Store{options: options{single: client}, config: Config{Prefix: "b:"}}).cursor(position{}),
		"of another database":  (&Store{options: options{single: other}, config: Config{Prefix: "a:"}}).cursor(position{}),
		"of bytes of any kind": cursorWord + base64.RawURLEncoding.EncodeToString(make([]byte, binary.Size(position{}))),
	} {
		_, err := s.List(t.Context(), store.Query{Limit: 1, After: text})
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "start the listing again") {
			t.Errorf("%s: %v, want ErrInvalid that says what to do", name, err)
		}
	}
}

// newCluster returns a store over three servers that have a record each: 1, 2 and 3 in
// the order of their addresses. id is that of the node that has the slots; while it is
// empty, no server tells.
func newCluster(t *testing.T, id *atomic.Value) *Store {
	t.Helper()
	var addrs []string
	for range 3 {
		var self string
		f := newFake(t, func(_, _ int, command []string) string {
			node := byte(slices.Index(addrs, self)) + 1
			switch name := strings.ToLower(command[0]); {
			case name == "command":
				return "*0\r\n" // the client knows it anyway
			case name == "cluster" && id.Load() == "":
				return "-LOADING\r\n"
			case name == "cluster":
				// The second range has no server any more.
				return "*2\r\n*3\r\n:0\r\n:16000\r\n*3\r\n" + bulk("127.0.0.1") + ":1\r\n" + bulk(fmt.Sprint(id.Load())) + "*2\r\n:16001\r\n:16383\r\n"
			case name == "info":
				return bulk(fmt.Sprintf("run_id:%d\n", node))
			case name == "scan":
				return "*2\r\n" + bulk("0") + "*1\r\n" + listedKey(node)
			default:
				return inspected
			}
		})
		self = f.Addr
		addrs = append(addrs, self)
	}
	slices.Sort(addrs)
	return newClusterStore(t, addrs...)
}

func TestAListingGoesOnInAClusterThatChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id   string // of the node with the slots, after the first page
		want string // the page that follows the first record
		err  error
	}{{"a", "2", nil}, {"b", "1", nil}, {"", "", store.ErrUnavailable}} {
		var id atomic.Value
		id.Store("a")
		s := newCluster(t, &id)
		if pages, err := walk(t, s, 1); err != nil || strings.Join(pages, " ") != "1 2 3" {
			t.Errorf("%q, %v; want the records of all servers", pages, err)
		}
		q := store.Query{Limit: 1}
		first, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		id.Store(c.id)
		q.After = first.Next
		next, err := s.List(t.Context(), q)
		if got := last(next.Records); !errors.Is(err, c.err) || got != c.want {
			t.Errorf("slots at %q: %q, %v; want %q, %v", c.id, got, err, c.want, c.err)
		}
	}
}

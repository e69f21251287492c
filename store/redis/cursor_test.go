package repriseredis

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"reflect"
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
		{bookmark: bookmark{Servers: 1 << 63, Node: 16383, Scan: 1<<64 - 1, Next: 5}},
		{bookmark: bookmark{Scan: 4, Next: 5}, after: bytes.Repeat([]byte{0xff}, 32)},
	} {
		want.Listed = s.listed()
		if got, err := s.parseCursor(s.cursor(want)); err != nil || !reflect.DeepEqual(got, want) {
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
		"of bytes of any kind": cursorWord + base64.RawURLEncoding.EncodeToString(make([]byte, binary.Size(bookmark{}))),
	} {
		_, err := s.List(t.Context(), store.Query{Limit: 1, After: text})
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "start the listing again") {
			t.Errorf("%s: %v, want ErrInvalid that says what to do", name, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	client := redis.NewClient(&redis.Options{})
	f.Cleanup(func() { _ = client.Close() })
	s := &Store{options: options{single: client}, config: Config{Prefix: "a:"}}
	f.Add(s.cursor(position{}))
	f.Add(s.cursor(position{bookmark: bookmark{Node: 3, Scan: 4, Next: 5}, after: make([]byte, 32)}))
	f.Fuzz(func(t *testing.T, text string) {
		at, err := s.parseCursor(text)
		if err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		if err == nil && text != "" && s.cursor(at) != text {
			t.Errorf("%q is read as %q", text, s.cursor(at))
		}
	})
}

// cluster is three servers that have a record each: 1, 2 and 3 in the order of their
// addresses.
type cluster struct {
	store   *Store
	shape   atomic.Int32 // selects the cluster's answer about its slots
	process atomic.Int32 // selects the servers' answers about their processes
}

// newCluster returns a cluster. The server node, from 0, gives the answer of override,
// unless that is empty.
func newCluster(t *testing.T, override func(c *cluster, node int, name string) string) *cluster {
	t.Helper()
	c := new(cluster)
	var addrs []string
	for range 3 {
		var self string
		f := newFake(t, func(_, _ int, command []string) string {
			node, name := slices.Index(addrs, self), strings.ToLower(command[0])
			if answer := override(c, node, name); answer != "" {
				return answer
			}
			digit := string(rune('1' + node))
			switch name {
			case "command":
				return "*0\r\n" // the client knows it anyway
			case "cluster":
				// The second range has no server any more.
				return "*2\r\n*3\r\n:0\r\n:16000\r\n*3\r\n" + bulk("127.0.0.1") + ":1\r\n" + bulk(string('a'+c.shape.Load())) + "*2\r\n:16001\r\n:16383\r\n"
			case "info":
				return bulk("run_id:" + digit + string('a'+c.process.Load()) + "\n")
			case "scan":
				return "*2\r\n" + bulk("0") + "*1\r\n" + listedKey(byte(node+1))
			default:
				return inspected
			}
		})
		self = f.Addr
		addrs = append(addrs, self)
	}
	slices.Sort(addrs)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			var slots []redis.ClusterSlot
			for i, addr := range addrs {
				slots = append(slots, redis.ClusterSlot{Start: i * 5000, End: i*5000 + 4999, Nodes: []redis.ClusterNode{{Addr: addr}}})
			}
			slots[2].End = 16383
			return slots, nil
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	s := over(t, client, Config{NoCombining: true})
	c.store = s
	return c
}

func TestAListingGoesOnInAClusterThatChanged(t *testing.T) {
	t.Parallel()
	if pages, err := walk(t, newCluster(t, func(*cluster, int, string) string { return "" }).store, 10); err != nil || strings.Join(pages, " ") != "123" {
		t.Errorf("%q, %v; want the records of all servers", pages, err)
	}
	for _, c := range []struct {
		name    string
		changes func(c *cluster)
		fails   string // the command that all servers refuse then
		want    string // the page that follows the first record
		err     error
	}{
		{"nothing changed", func(*cluster) {}, "", "2", nil},
		{"slots moved", func(c *cluster) { c.shape.Add(1) }, "", "1", nil},
		{"other processes", func(c *cluster) { c.process.Add(1) }, "", "1", nil},
		{"a server that loads its data", func(c *cluster) { c.shape.Add(1) }, "info", "", store.ErrUnavailable},
		{"slots that nobody tells", func(*cluster) {}, "cluster", "", store.ErrUnavailable},
	} {
		var failing atomic.Value
		failing.Store("")
		cluster := newCluster(t, func(_ *cluster, _ int, name string) string {
			if name == failing.Load() {
				return "-LOADING\r\n"
			}
			return ""
		})
		q := store.Query{Limit: 1}
		first, err := cluster.store.List(t.Context(), q)
		if err != nil || len(first.Records) != 1 || first.Records[0].ID[31] != 1 {
			t.Fatalf("%s: the first page is %+v, %v", c.name, first, err)
		}
		c.changes(cluster)
		failing.Store(c.fails)
		q.After = first.Next
		next, err := cluster.store.List(t.Context(), q)
		var text []byte
		for _, r := range next.Records {
			text = append(text, '0'+r.ID[31])
		}
		if got := string(text); !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

package repriseredis

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

func TestACursorBelongsToItsStore(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	s := &Store{client: client, prefix: "a:"}
	for _, want := range []position{
		{},
		{shape: 1 << 63, node: 16383, last: identity{process: 2, data: 3}, stepper: stepper{scan: 1<<64 - 1, next: 5}},
		{stepper: stepper{scan: 4, next: 5, after: bytes.Repeat([]byte{0xff}, 32)}},
	} {
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
		"of another prefix":    (&Store{client: client, prefix: "b:"}).cursor(position{}),
		"of another database":  (&Store{client: other, prefix: "a:"}).cursor(position{}),
		"of bytes of any kind": cursorWord + base64.RawURLEncoding.EncodeToString(make([]byte, cursorSize)),
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
	s := &Store{client: client, prefix: "a:"}
	f.Add(s.cursor(position{}))
	f.Add(s.cursor(position{node: 3, stepper: stepper{scan: 4, next: 5, after: make([]byte, 32)}}))
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

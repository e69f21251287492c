package pipeline

import (
	"errors"
	"testing"
)

type marshaled []byte

func (m marshaled) MarshalBinary() ([]byte, error) {
	if m == nil {
		return nil, errors.New("no bytes")
	}
	return m, nil
}

// The arguments of a command are written as go-redis writes them.
func TestArgumentsAreWritten(t *testing.T) {
	t.Parallel()
	text, number := "k", int64(-7)
	got, ok := AppendCommand(nil, []any{"set", &text, marshaled("b\r\n"), 3, int64(4), &number})
	if want := "*6\r\n$3\r\nset\r\n$1\r\nk\r\n$3\r\nb\r\n\r\n$1\r\n3\r\n$1\r\n4\r\n$2\r\n-7\r\n"; !ok || string(got) != want {
		t.Errorf("wrote %q, %v; want %q", got, ok, want)
	}
	for _, arg := range []any{1.5, marshaled(nil)} {
		if _, ok := AppendCommand(nil, []any{arg}); ok {
			t.Errorf("wrote %#v", arg)
		}
	}
}

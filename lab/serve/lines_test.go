package serve

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnreadLogBlocksNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newLines(w)
		began := time.Now()
		for range 2 * lineBuffer {
			fmt.Fprintln(l, "line")
		}
		l.close()
		if took := time.Since(began); took != lineTimeout {
			t.Errorf("took %v, want only the time that close waits for a reader", took)
		}
		_ = r.Close() // lets the writer end
	})
}

func TestLogIsWrittenInFullWhenItIsClosed(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	l := newLines(w)
	fmt.Fprintln(l, "first")
	fmt.Fprintln(l, "last")
	go func() { l.close(); _ = w.Close() }()
	if text, err := io.ReadAll(r); string(text) != "first\nlast\n" || err != nil {
		t.Errorf("read %q, error %v, want both lines", text, err)
	}
	fmt.Fprintln(l, "late") // is not written, and does no harm
}

package reprisefasthttp

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// R47: up to 256 KiB of a body that was not asked for are read, so that its connection
// can be used again.
func TestR47UnwantedBodiesAreDrained(t *testing.T) {
	t.Parallel()
	const most = 256 << 10
	for _, c := range []struct {
		has      int
		declared int64
		end      error
		want     bool
		read     int
	}{
		{0, 0, io.EOF, true, 0},
		{100, -1, io.EOF, true, 100},
		{100, 100, io.EOF, true, 100},
		{most, most, io.EOF, true, most},
		{most, -1, io.EOF, true, most},
		{most + 1, -1, io.EOF, false, most + 1},
		{2 * most, -1, io.EOF, false, most + 1},
		{most + 1, most + 1, io.EOF, false, 0}, // not even begun
		{100, -1, io.ErrUnexpectedEOF, false, 100},
	} {
		sent := bytes.NewReader(make([]byte, c.has))
		got := drain(io.MultiReader(sent, iotest.ErrReader(c.end)), c.declared)
		if read := c.has - sent.Len(); got != c.want || read != c.read {
			t.Errorf("%d bytes, declared %d: %t after %d bytes, want %t after %d", c.has, c.declared, got, read, c.want, c.read)
		}
	}
}

package protocol_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// unpacked ends as a reader does whose packed source broke off.
type unpacked struct{ io.Reader }

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err == io.EOF { //nolint:errorlint // the reader's own
		err = fmt.Errorf("chunk 3: %w", err)
	}
	return n, err
}

// R27, R33: only io.EOF itself is the end of a body. A wrapped one is a failure, as it is
// for io.Copy.
func TestWrappedEndIsAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 4}})
	admit := func(key string, body io.Reader) protocol.Admission { return b.admitIn(t.Context(), key, body) }
	if a := admit("request", unpacked{strings.NewReader("half")}); a.Exchange != nil || a.Response.Status != 400 {
		t.Errorf("a request whose body broke off is answered %d", a.Response.Status)
	}
	for name, row := range map[string]struct {
		declared int64
		body     io.Reader
		cut      bool
	}{
		"wrapped end":           {-1, unpacked{strings.NewReader("ha")}, true},
		"end":                   {-1, strings.NewReader("ha"), false},
		"longer than declared":  {4, strings.NewReader("12345"), true}, // at the limit of kept bodies
		"longer than is kept":   {-1, strings.NewReader("12345"), false},
		"shorter than declared": {4, strings.NewReader("123"), true},
	} {
		a := admit(strings.ReplaceAll(name, " ", "-"), strings.NewReader("body"))
		if a.Exchange == nil {
			t.Fatalf("%s: %+v", name, a.Response)
		}
		capture := a.Exchange.Capture(row.declared)
		_, err := capture.ReadFrom(row.body)
		if got := capture.Captured(200, err); got.Cut != row.cut {
			t.Errorf("%s: cut is %v", name, got.Cut)
		}
		a.Exchange.Finish(protocol.Captured{Status: 200})
		a.Exchange.Close()
	}
}

package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// What an observer, and so a log, is told of a body that cannot be read names the kind of
// failure, and quotes nothing of what the client sent.
func TestErrorsOfABodyDoNotQuoteIt(t *testing.T) {
	t.Parallel()
	for want, cause := range map[string]error{
		"malformed": textproto.ProtocolError(`malformed MIME header: missing colon: "secret"`),
		"early":     fmt.Errorf("chunk secret: %w", io.ErrUnexpectedEOF),
		"in time":   fmt.Errorf("secret: %w", os.ErrDeadlineExceeded),
		"OpError":   &net.OpError{Op: "read", Err: errors.New("secret")},
	} {
		var told []reprise.Event
		observer := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) { told = append(told, e) })
		engine, err := reprise.New(memstore.New(), reprise.Config{Observer: observer})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
		guard, err := protocol.New(engine, protocol.Config{})
		if err != nil {
			t.Fatal(err)
		}
		guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}},
			Body: io.MultiReader(strings.NewReader("half"), failing{cause}),
		}, scope)
		if len(told) != 1 || told[0].Err == nil {
			t.Fatalf("%s: told of %+v", want, told)
		}
		if text := told[0].Err.Error(); strings.Contains(text, "secret") || !strings.Contains(text, want) || !errors.Is(told[0].Err, cause) {
			t.Errorf("%v is told as %q, want %q in it", cause, text, want)
		}
	}
}

package protocol_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
)

// spanKey is the key of a trace in a context.
type spanKey struct{}

// A handler that completes its operation with Payload, in its own transaction, and then
// writes the same response, is kept under the same bytes: the store would take others for
// the response of another attempt. That is so although an envelope has a random nonce and
// a time, an expiry has a time, and an annotation depends on the context.
func TestExchangeKeepsThePayloadOfPayload(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*protocol.Config){
		"plain":   func(*protocol.Config) {},
		"sealed":  func(c *protocol.Config) { c.Seal.Secret = secret(t, "1") },
		"expires": func(c *protocol.Config) { c.Announce.Expires = true },
		"both":    func(c *protocol.Config) { c.Seal.Secret, c.Announce.Expires = secret(t, "1"), true },
		"annotated": func(c *protocol.Config) {
			c.Keep.Annotate = func(ctx context.Context) string {
				span, _ := ctx.Value(spanKey{}).(string)
				return "span " + span
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := protocol.Config{Name: "orders"}
				change(&cfg)
				b, store, _ := setupSealed(t, cfg)
				var payload []byte
				first := b.run("key", func(w *protocol.Recorder, h http.Header, x *protocol.Exchange) {
					payload = must(protocol.Payload(context.WithValue(x.Context(), spanKey{}, "of the handler"), protocol.Response{
						Status: 201, Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/plain"}), Body: []byte("booked"),
					}))
					time.Sleep(2 * time.Second) // the commit
					answering("booked")(w, h, x)
				})
				if kept := payloadOf(t, store, "key"); !bytes.Equal(kept, payload) {
					t.Errorf("kept %q, and Payload made %q", kept, payload)
				}
				replayed := b.replay("key").Header().Get("Idempotency-Key-Expires")
				if sent := first.Header().Get("Idempotency-Key-Expires"); sent != replayed || (sent != "") != cfg.Announce.Expires {
					t.Errorf("the response expires at %q, and its replay at %q", sent, replayed)
				}

				b.run("another", func(w *protocol.Recorder, h http.Header, x *protocol.Exchange) {
					_, err := protocol.Payload(x.Context(), protocol.Response{Status: 201, Body: []byte("not used")})
					if err != nil {
						t.Fatal(err)
					}
					answering("booked")(w, h, x)
				})
				if w := b.replay("another"); w.Body.String() != "booked" {
					t.Errorf("replayed %q", w.Body)
				}
			})
		})
	}
}

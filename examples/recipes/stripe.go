package main

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// stripeWebhooks handles each event of Stripe once, however often it is delivered
// (https://docs.stripe.com/webhooks).
//
//   - The key is the "id" of the event, which all of its deliveries have.
//   - Bodies are not compared: an event counts its "pending_webhooks", so two deliveries
//     may differ (https://docs.stripe.com/api/events/object). The signature proves that
//     both are Stripe's.
//   - The header is not signed, and a key in it counts where the guard cannot read the
//     body, such as one that says it is text. So the field is removed before.
//   - The retention is longer than the three days in which Stripe repeats a delivery
//     (https://docs.stripe.com/webhooks/process-undelivered-events).
//   - A handler that fails answers 5xx, which is not kept: the next delivery runs.
func stripeWebhooks(engine *reprise.Engine, secret string, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Name: "stripe", Endpoint: "stripe", Required: true, Key: protocol.KeyField("/id"),
		Fingerprint: protocol.Fingerprinting{Func: protocol.NoFingerprint}, Retention: 30 * 24 * time.Hour,
	}))
	once := reprisehttp.Middleware(guard, sender("stripe"))
	return verified(stripeSignature(secret), unnamed(once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct{ ID, Type string }
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			http.Error(w, "The event is unreadable.", http.StatusBadRequest)
			return
		}
		l.add(event.Type + " " + event.ID)
		respond(w, http.StatusOK, map[string]bool{"received": true})
	}))))
}

// unnamed removes the key that a request may have in its header.
func unnamed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Idempotency-Key")
		next.ServeHTTP(w, r)
	})
}

// stripeSignature verifies Stripe-Signature: t=<seconds>, and a v1=<hex> for each active
// secret, which is the HMAC-SHA256 of the time, a dot and the body.
func stripeSignature(secret string) func(http.Header, []byte) error {
	return func(h http.Header, body []byte) error {
		var seconds string
		var signatures [][]byte
		for item := range strings.SplitSeq(h.Get("Stripe-Signature"), ",") {
			switch name, value, _ := strings.Cut(item, "="); name {
			case "t":
				seconds = value
			case "v1":
				if s, err := hex.DecodeString(value); err == nil {
					signatures = append(signatures, s)
				}
			}
		}
		return authentic([]byte(secret), seconds, slices.Concat([]byte(seconds+"."), body), signatures)
	}
}

package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// standardWebhooks handles each event of a sender that follows Standard Webhooks once
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
//
//   - The key is the field webhook-id, which is the same in every attempt to deliver an
//     event.
//   - A second delivery has another webhook-timestamp and webhook-signature. Header
//     fields are not part of the fingerprint, so it is a duplicate. Another body with the
//     same ID is refused with 422, because the sender signed two events with one ID.
func standardWebhooks(engine *reprise.Engine, secret string, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Name: "standard-webhooks", Endpoint: "standard-webhooks", Required: true,
		Key: protocol.KeyHeader("Webhook-Id"), Retention: 30 * 24 * time.Hour,
	}))
	once := reprisehttp.Middleware(guard, sender("standard-webhooks"))
	return verified(standardSignature(secret), once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct{ Type string }
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			http.Error(w, "The event is unreadable.", http.StatusBadRequest)
			return
		}
		l.add(event.Type + " " + r.Header.Get("Webhook-Id"))
		w.WriteHeader(http.StatusNoContent)
	})))
}

// standardSignature verifies webhook-signature: a space-separated list of v1,<base64>,
// each the HMAC-SHA256 of the ID, the time and the body, joined by dots. Other versions
// are ignored. The secret is "whsec_" and the key in base64.
func standardSignature(secret string) func(http.Header, []byte) error {
	key := must(base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")))
	return func(h http.Header, body []byte) error {
		var signatures [][]byte
		for item := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
			if value, ok := strings.CutPrefix(item, "v1,"); ok {
				if s, err := base64.StdEncoding.DecodeString(value); err == nil {
					signatures = append(signatures, s)
				}
			}
		}
		seconds := h.Get("Webhook-Timestamp")
		signed := slices.Concat([]byte(h.Get("Webhook-Id")+"."+seconds+"."), body)
		return authentic(key, seconds, signed, signatures)
	}
}

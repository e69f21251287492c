package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
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
		Label: "stripe", Endpoint: "stripe", Required: true, Key: protocol.KeyField("/id"),
		Fingerprint: protocol.Fingerprinting{Func: protocol.NoFingerprint}, Retention: 30 * 24 * time.Hour,
	}))
	once := reprisehttp.Middleware(guard, sender("stripe"))(receiver(l))
	return verified(stripeSignature(secret), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Idempotency-Key")
		once.ServeHTTP(w, r)
	}))
}

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
		Label: "standard-webhooks", Endpoint: "standard-webhooks", Required: true,
		Key: protocol.KeyHeader("Webhook-Id"), Retention: 30 * 24 * time.Hour,
	}))
	return verified(standardSignature(secret), reprisehttp.Middleware(guard, sender("standard-webhooks"))(receiver(l)))
}

// receiver works on an event.
func receiver(l *ledger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.add()
		respond(w, http.StatusOK, map[string]bool{"received": true})
	})
}

// sender is the scope of a webhook receiver, which has one sender. A client may have the
// same name, so the policy of a receiver also has an Endpoint.
func sender(name string) func(*http.Request) (string, error) {
	return func(*http.Request) (string, error) { return name, nil }
}

// tolerance is how far the time of a signature may be from now.
const tolerance = 5 * time.Minute

// maxBody bounds the bodies that are read outside of the middleware, in bytes.
const maxBody = 1 << 20

// verified lets requests through whose signature is valid. It stands outside of the
// middleware. If it stood inside, a forged event could claim the ID of a real one, whose
// delivery would then get the response to the forged event and never run.
func verified(verify func(h http.Header, body []byte) error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = verify(r.Header, body)
		}
		if err != nil {
			http.Error(w, "The signature is invalid: "+err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body)) // the middleware reads it, too
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
		return authentic(key, seconds, slices.Concat([]byte(h.Get("Webhook-Id")+"."+seconds+"."), body), signatures)
	}
}

// authentic returns nil if one of the signatures is the HMAC-SHA256 of the signed
// content, and its time, in seconds since 1970, is close to now. A sender signs with two
// secrets while it replaces one.
func authentic(secret []byte, seconds string, signed []byte, signatures [][]byte) error {
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || time.Since(time.Unix(unix, 0)).Abs() > tolerance {
		return errors.New("its time is missing, or too far from now")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(signed)
	want := mac.Sum(nil)
	if !slices.ContainsFunc(signatures, func(s []byte) bool { return hmac.Equal(s, want) }) {
		return errors.New("it does not match")
	}
	return nil
}

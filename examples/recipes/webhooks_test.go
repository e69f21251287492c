package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const event = `{"id":"evt_1","object":"event","type":"invoice.paid","pending_webhooks":2}`

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// stripe delivers an event that was signed so long ago.
func stripe(secret, body string, age time.Duration, status int, replayed bool) call {
	seconds := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
	field := "t=" + seconds + ",v1=" + strings.Repeat("0", 64) + ",v1=" + hex.EncodeToString(sign([]byte(secret), seconds+"."+body))
	return call{"/stripe/webhooks", body, map[string]string{"Stripe-Signature": field}, status, replayed, nil}
}

// standard delivers an event of Standard Webhooks that was signed so long ago.
func standard(secret, id, body string, age time.Duration, status int, replayed bool) call {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	seconds := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
	return call{"/webhooks", body, map[string]string{
		"Webhook-Id": id, "Webhook-Timestamp": seconds, "Webhook-Signature": "v1a,asymmetric v1," + base64.StdEncoding.EncodeToString(sign(key, id+"."+seconds+"."+body)),
	}, status, replayed, nil}
}

// An event runs once. One whose signature is invalid claims no key, so it cannot keep the
// real one out, and it does not get the response to the real one.
func TestEventsAreHandledOnceAndForgedOnesNever(t *testing.T) {
	t.Parallel()
	const otherSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	changed := strings.Replace(event, ":2}", ":1}", 1)
	renamed := stripe(stripeSecret, event, 0, 400, false) // with a key that nobody signed, which is not used
	renamed.fields["Idempotency-Key"], renamed.fields["Content-Type"] = "another", "text/plain"
	for name, calls := range map[string][]call{
		"Stripe": {
			stripe("whsec_other", event, 0, 400, false),
			stripe(stripeSecret, event, 6*time.Minute, 400, false),
			stripe(stripeSecret, event, -6*time.Minute, 400, false),
			{"/stripe/webhooks", event, nil, 400, false, nil},
			stripe(stripeSecret, event, time.Minute, 200, false),
			stripe(stripeSecret, changed, 0, 200, true),
			stripe("whsec_other", event, 0, 400, false),
			stripe(stripeSecret, `{"object":"event"}`, 0, 400, false),
			renamed,
		},
		"Standard Webhooks": {
			standard(otherSecret, "msg_1", event, 0, 400, false),
			standard(standardSecret, "msg_1", event, 6*time.Minute, 400, false),
			standard(standardSecret, "msg_1", event, time.Minute, 200, false),
			standard(standardSecret, "msg_1", event, 0, 200, true),
			standard(standardSecret, "msg_1", changed, 0, 422, false),
			standard(standardSecret, "", event, 0, 400, false),
			standard(otherSecret, "msg_1", event, 0, 400, false),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, 1, calls...)
		})
	}
}

// A client of another recipe can neither take the key of an event nor read its response.
func TestClientCannotTakeTheKeyOfAnEvent(t *testing.T) {
	t.Parallel()
	as := func(name, key string) call {
		body := `{"idempotency_key":"` + key + `","source_id":"CASH"}`
		return call{"/v2/payments", body, map[string]string{"Authorization": "Bearer " + name}, 200, false, nil}
	}
	run(t, 4, as("stripe", "evt_1"), as("standard-webhooks", "msg_1"),
		stripe(stripeSecret, event, 0, 200, false), standard(standardSecret, "msg_1", event, 0, 200, false))
}

// The signatures are those that OpenSSL computes:
//
//	printf %s "946684800.$body" | openssl dgst -sha256 -hmac "$secret"
//	printf %s "$id.946684800.$body" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | base64
func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the time is 946684800
		verify := stripeSignature("whsec_of_the_example")
		h := http.Header{"Stripe-Signature": {"t=946684800,v1=35cca53a2432521762c8a0770ee75c4eaebf2a4fcdd9c71b3abef251b0a3a274"}}
		body := []byte(`{"id":"evt_1","object":"event"}`)
		if err := verify(h, body); err != nil {
			t.Error(err)
		}
		standard := http.Header{
			"Webhook-Id": {"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"}, "Webhook-Timestamp": {"946684800"}, "Webhook-Signature": {"v1,5+lEKlOXkpyjbCoQQPgzx22SDnUCwZXPW0YwiIZJ+0M="},
		}
		if err := standardSignature(standardSecret)(standard, []byte(`{"type":"user.created","data":{"id":"1"}}`)); err != nil {
			t.Error(err)
		}
		<-time.After(tolerance)
		if err := verify(h, body); err != nil {
			t.Error("at the tolerance:", err)
		}
		<-time.After(time.Nanosecond)
		if verify(h, body) == nil {
			t.Error("valid after the tolerance")
		}
	})
}

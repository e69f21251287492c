package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stripeField returns a Stripe-Signature that is as old as age.
func stripeField(secret, body string, age time.Duration) string {
	seconds := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "." + body))
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func stripeEvent(id, pending string) string {
	return `{"id":"` + id + `","object":"event","type":"invoice.paid","pending_webhooks":` + pending + `}`
}

// deliver sends an event with its signature, as old as age.
func (s *service) deliver(event string, age time.Duration) answer {
	s.Helper()
	return s.post("/stripe/webhooks", event, "Stripe-Signature", stripeField(stripeSecret, event, age))
}

func TestStripeEventIsHandledOnce(t *testing.T) {
	t.Parallel()
	s := startBlocked(t)
	first := s.begin(func() answer { return s.deliver(stripeEvent("evt_1", "2"), 0) })
	s.want(s.deliver(stripeEvent("evt_1", "2"), time.Minute), 409, false)
	s.finish()
	s.want(<-first, 200, false, `{"received":true}`)
	s.want(s.deliver(stripeEvent("evt_1", "1"), 2*time.Minute), 200, true, `{"received":true}`)
	s.want(s.deliver(stripeEvent("evt_2", "1"), 0), 200, false)
	s.want(s.deliver(`{"object":"event"}`, 0), 400, false, "key-missing")
	s.ran(2)
}

// An event whose signature is invalid claims no key, so it cannot keep the real one out,
// and it does not get the response to the real one.
func TestForgedStripeEventClaimsNoKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	event := stripeEvent("evt_1", "1")
	genuine := stripeField(stripeSecret, event, 0)
	at, signature, _ := strings.Cut(genuine, ",")
	forged := map[string]string{
		"another secret":    stripeField("whsec_other", event, 0),
		"another body":      stripeField(stripeSecret, event+" ", 0),
		"another version":   strings.Replace(genuine, "v1=", "v0=", 1),
		"too old":           stripeField(stripeSecret, event, 6*time.Minute),
		"too new":           stripeField(stripeSecret, event, -6*time.Minute),
		"no time":           signature,
		"not hexadecimal":   genuine + "g",
		"an empty one":      at + ",v1=",
		"a field with none": "",
	}
	for name, field := range forged {
		if a := s.post("/stripe/webhooks", event, "Stripe-Signature", field); a.status != http.StatusBadRequest {
			t.Errorf("%s: %+v", name, a)
		}
	}
	s.ran(0)
	s.want(s.post("/stripe/webhooks", event, "Stripe-Signature", at+",v1="+strings.Repeat("0", 64)+","+signature), 200, false)
	for name, field := range forged {
		if a := s.post("/stripe/webhooks", event, "Stripe-Signature", field); a.status != http.StatusBadRequest || a.replayed {
			t.Errorf("%s, after the real one: %+v", name, a)
		}
	}
	s.ran(1)
}

// A delivery that is sent again with a key in its header, which nobody signed, is a
// duplicate of its event.
func TestStripeEventIsNotRenamedByItsHeader(t *testing.T) {
	t.Parallel()
	s := start(t)
	event := stripeEvent("evt_1", "1")
	s.want(s.deliver(event, 0), 200, false)
	for _, media := range []string{"application/json", "text/plain", "multipart/form-data; boundary=b"} {
		s.post("/stripe/webhooks", event, "Stripe-Signature", stripeField(stripeSecret, event, 0), "Content-Type", media, "Idempotency-Key", "another")
	}
	s.ran(1)
}

// The signature is the one that OpenSSL computes:
//
//	printf %s "946684800.$body" | openssl dgst -sha256 -hmac "$secret"
func TestStripeSignatureVector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the time is 946684800
		h := http.Header{"Stripe-Signature": {"t=946684800,v1=35cca53a2432521762c8a0770ee75c4eaebf2a4fcdd9c71b3abef251b0a3a274"}}
		verify := stripeSignature("whsec_of_the_example")
		body := []byte(`{"id":"evt_1","object":"event"}`)
		if err := verify(h, body); err != nil {
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

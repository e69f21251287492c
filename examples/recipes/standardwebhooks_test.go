package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// send sends an event of Standard Webhooks that was signed with the secret, as old as
// age.
func (s *service) send(secret, id, body string, age time.Duration) answer {
	s.Helper()
	key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	if err != nil {
		s.Fatal(err)
	}
	seconds := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + seconds + "." + body))
	return s.post("/webhooks", body, "webhook-id", id, "webhook-timestamp", seconds,
		"webhook-signature", "v1a,asymmetric v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

const (
	standardID   = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"
	standardBody = `{"type":"user.created","data":{"id":"1"}}`
	otherSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// A second attempt has another timestamp and signature, and is a duplicate.
func TestStandardWebhookIsHandledOnce(t *testing.T) {
	t.Parallel()
	s := startBlocked(t)
	first := s.begin(func() answer { return s.send(standardSecret, standardID, standardBody, 0) })
	s.want(s.send(standardSecret, standardID, standardBody, time.Minute), 409, false)
	s.finish()
	s.want(<-first, 204, false)
	s.want(s.send(standardSecret, standardID, standardBody, 2*time.Minute), 204, true)
	s.want(s.send(standardSecret, standardID, `{"type":"user.deleted"}`, 0), 422, false, "key-reused")
	s.want(s.send(standardSecret, "", standardBody, 0), 400, false)
	s.ran(1)
}

func TestForgedStandardWebhookClaimsNoKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, age := range []time.Duration{6 * time.Minute, -6 * time.Minute} {
		s.want(s.send(standardSecret, standardID, standardBody, age), 400, false)
	}
	s.want(s.send(otherSecret, standardID, standardBody, 0), 400, false)
	s.ran(0)
	s.want(s.send(standardSecret, standardID, standardBody, 0), 204, false)
	s.want(s.send(otherSecret, standardID, standardBody, 0), 400, false)
	s.ran(1)
}

// The signature is the one that OpenSSL computes:
//
//	printf %s "$id.946684800.$body" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | base64
func TestStandardSignatureVector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the time is 946684800
		h := http.Header{}
		h.Set("webhook-id", standardID)
		h.Set("webhook-timestamp", "946684800")
		h.Set("webhook-signature", "v1,5+lEKlOXkpyjbCoQQPgzx22SDnUCwZXPW0YwiIZJ+0M=")
		if err := standardSignature(standardSecret)(h, []byte(standardBody)); err != nil {
			t.Error(err)
		}
		h.Set("webhook-id", standardID+"W")
		if standardSignature(standardSecret)(h, []byte(standardBody)) == nil {
			t.Error("valid with another ID")
		}
	})
}

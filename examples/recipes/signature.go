package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// tolerance is how far the time of a signature may be from now.
const tolerance = 5 * time.Minute

// maxEvent bounds the body of a webhook, in bytes.
const maxEvent = 1 << 20

// verified lets requests through whose signature is valid. It stands outside of the
// middleware. If it stood inside, a forged event could claim the ID of a real one, whose
// delivery would then get the response to the forged event and never run.
func verified(verify func(h http.Header, body []byte) error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
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
	for _, s := range signatures {
		if hmac.Equal(s, want) {
			return nil
		}
	}
	return errors.New("it does not match")
}

// Golang is an upstream that speaks HTTP/2 without TLS. An order is a line with its key
// in the file EFFECTS. The answer differs from run to run.
package main

import (
	crand "crypto/rand"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"
)

func main() {
	effects, err := os.OpenFile(os.Getenv("EFFECTS"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	http.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(rand.N(10 * time.Millisecond))
		if _, err := effects.WriteString(r.Header.Get("Idempotency-Key") + "\n"); err != nil {
			panic(err)
		}
		time.Sleep(rand.N(10 * time.Millisecond))
		body := make([]byte, 512)
		_, _ = crand.Read(body)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	server := http.Server{Addr: os.Getenv("LISTEN"), Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	panic(server.ListenAndServe())
}

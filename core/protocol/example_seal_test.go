package protocol_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// The secret is rotated while records that it sealed are replayed: every process gets the
// new one to read with, then every process seals with it, and the former one goes when
// the retention has ended.
func ExampleSealing() {
	st := memstore.New()
	secret := func(id string) protocol.Secret {
		s, err := protocol.NewSecret(id, bytes.Repeat([]byte(id), 8)) // 32 random bytes, from a vault
		if err != nil {
			panic(err)
		}
		return s
	}
	october, november := secret("2026-10"), secret("2026-11")

	send := func(when string, seal protocol.Sealing, key string) {
		guard, err := protocol.New(st, protocol.Config{Seal: seal}) // of another process of the service
		if err != nil {
			panic(err)
		}
		defer guard.Close(context.Background())
		a := guard.Admit(context.Background(), protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {key}}},
			func() (string, error) { return "tenant", nil })
		if a.Exchange != nil {
			defer a.Exchange.Close()
			a.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte("order " + key)})
			fmt.Println(when, "recorded", key)
			return
		}
		fmt.Println(when, "replayed", key, a.Response.Status)
	}
	send("before:     ", protocol.Sealing{Secret: october}, "1")
	send("readers:    ", protocol.Sealing{Secret: october, OtherSecrets: []protocol.Secret{november}}, "1")
	rotated := protocol.Sealing{Secret: november, OtherSecrets: []protocol.Secret{october}}
	send("writers:    ", rotated, "1")
	send("writers:    ", rotated, "2")
	send("a day later:", protocol.Sealing{Secret: november}, "2")
	// Output:
	// before:      recorded 1
	// readers:     replayed 1 201
	// writers:     replayed 1 201
	// writers:     recorded 2
	// a day later: replayed 2 201
}

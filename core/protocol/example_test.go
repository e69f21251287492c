package protocol_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// How an adapter uses a guard, for a framework that writes as net/http does.
func Example() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	serve := func(w http.ResponseWriter, key string) {
		request := protocol.Request{
			Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {key}}, Body: strings.NewReader("{}"),
		}
		admission := guard.Admit(context.Background(), request, func() (string, error) { return "tenant-1", nil })
		switch x := admission.Exchange; {
		case admission.Pass: // run the handler, untouched
		case x == nil:
			admission.Response.Write(w.Header(), w)
		default:
			var recorder protocol.Recorder
			recorder.Start(x, w.Header(), w, http.DetectContentType)
			defer recorder.Close()
			recorder.WriteHeader(http.StatusCreated)
			_, _ = recorder.WriteString("order 1")
			recorder.Finish()
		}
	}
	for range 2 {
		w := httptest.NewRecorder()
		serve(w, "2f1c")
		fmt.Printf("%d %s replayed:%q\n", w.Code, w.Body, w.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// 201 order 1 replayed:""
	// 201 order 1 replayed:"true"
}

// One engine, a policy for each kind of route.
func ExampleGuard_With() {
	orders, err := protocol.New(memstore.New(), protocol.Config{Label: "orders", Required: true})
	if err != nil {
		panic(err)
	}
	defer orders.Close(context.Background())
	payments, err := orders.With(func(c *protocol.Config) {
		c.Label, c.Preset, c.Retention = "payments", reprise.AtMostOnce, 30*24*time.Hour
	})
	if err != nil {
		panic(err)
	}
	for _, guard := range []*protocol.Guard{orders, payments} {
		a := guard.Admit(context.Background(), protocol.Request{Method: "POST"}, nil)
		fmt.Println(a.Response.Status) // both still require a key
	}
	// Output:
	// 400
	// 400
}

package protocol_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// A sender of messages reports each status of each of them, in a form without an ID of
// its own, and repeats the report until it is answered. The two fields together are the
// key.
func ExampleKeyFunc() {
	status := func(_ *protocol.Request, body []byte) (string, error) {
		form, err := url.ParseQuery(string(body))
		if err != nil || !form.Has("message") {
			return "", err // no key: Required refuses the request
		}
		return form.Get("message") + ":" + form.Get("status"), nil
	}
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true, Key: protocol.KeyFunc("message and status", status)})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())
	for _, body := range []string{"message=SM1&status=sent", "message=SM1&status=delivered", "message=SM1&status=sent", "status=sent"} {
		r := protocol.Request{Method: "POST", Path: "/status", Bytes: []byte(body)}
		admission := guard.Admit(context.Background(), r, func() (string, error) { return "sender", nil })
		if x := admission.Exchange; x != nil {
			x.Finish(protocol.Captured{Status: http.StatusNoContent})
			x.Close()
			fmt.Println(body, "runs")
		} else {
			fmt.Println(body, "is answered:", admission.Response.Status)
		}
	}
	// Output:
	// message=SM1&status=sent runs
	// message=SM1&status=delivered runs
	// message=SM1&status=sent is answered: 204
	// status=sent is answered: 400
}

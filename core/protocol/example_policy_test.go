package protocol_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

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

// A company's own error format, in the language of the client and with the ID of the
// request.
func ExampleConfig_writeProblem() {
	titles := map[string]map[protocol.Code]string{"de": {protocol.CodeKeyMissing: "Der Schlüssel fehlt"}}
	guard, err := protocol.New(memstore.New(), protocol.Config{
		Required: true,
		Problems: protocol.ProblemFormat{Write: func(_ context.Context, r *protocol.Request, p protocol.Problem) protocol.Response {
			title := p.Title
			if language := r.Header.Values("Accept-Language"); len(language) > 0 && titles[language[0]][p.Code] != "" {
				title = titles[language[0]][p.Code]
			}
			return protocol.Response{
				Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}),
				Body:   fmt.Appendf(nil, `{"error":%q,"code":%q}`, title, p.Code),
			}
		}},
	})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())
	a := guard.Admit(context.Background(), protocol.Request{
		Method: "POST", Header: http.Header{"Accept-Language": {"de"}},
	}, nil)
	fmt.Printf("%d %s\n", a.Response.Status, a.Response.Body)
	// Output: 400 {"error":"Der Schlüssel fehlt","code":"key-missing"}
}

// A payment must not run again, however late a retry comes. For a day retries get the
// response, and for a year after that they are refused.
func ExampleConfig_horizon() {
	const day = time.Millisecond // of this example
	payments, err := protocol.New(memstore.New(), protocol.Config{Preset: reprise.AtMostOnce, Retention: day, Horizon: 365 * 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	defer payments.Close(context.Background())
	pay := func() protocol.Admission {
		return payments.Admit(context.Background(), protocol.Request{
			Method: "POST", Path: "/payments", Header: http.Header{"Idempotency-Key": {"8e03978e-40d5-43dd-bc93-6894a57f9324"}},
		}, func() (string, error) { return "tenant", nil })
	}
	first := pay().Exchange
	first.Finish(protocol.Captured{Status: 201})
	<-time.After(2 * day)
	late := pay().Response
	fmt.Printf("%d %s\n", late.Status, late.Body)
	// Output: 409 {"type":"https://github.com/reprise-go/reprise/blob/main/docs/reference/problems.md#result-expired","title":"Result expired","status":409,"detail":"The first request with this Idempotency-Key ran, and its response is no longer kept. The operation will not run again.","code":"result-expired","retryable":false}
}

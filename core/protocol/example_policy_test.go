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
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		panic(err)
	}
	defer engine.Close(context.Background())
	orders, err := protocol.New(engine, protocol.Config{Name: "orders", Required: true})
	if err != nil {
		panic(err)
	}
	payments, err := orders.With(func(c *protocol.Config) {
		c.Name, c.Preset, c.Retention = "payments", reprise.AtMostOnce, 30*24*time.Hour
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
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		panic(err)
	}
	defer engine.Close(context.Background())
	titles := map[string]map[protocol.Code]string{"de": {protocol.CodeKeyMissing: "Der Schlüssel fehlt"}}
	guard, err := protocol.New(engine, protocol.Config{
		Required: true,
		WriteProblem: func(_ context.Context, r *protocol.Request, p protocol.Problem) protocol.Response {
			title := p.Title
			if language := r.Header.Values("Accept-Language"); len(language) > 0 && titles[language[0]][p.Code] != "" {
				title = titles[language[0]][p.Code]
			}
			return protocol.Response{
				Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}),
				Body:   fmt.Appendf(nil, `{"error":%q,"code":%q}`, title, p.Code),
			}
		},
	})
	if err != nil {
		panic(err)
	}
	a := guard.Admit(context.Background(), protocol.Request{
		Method: "POST", Header: http.Header{"Accept-Language": {"de"}},
	}, nil)
	fmt.Printf("%d %s\n", a.Response.Status, a.Response.Body)
	// Output: 400 {"error":"Der Schlüssel fehlt","code":"key-missing"}
}

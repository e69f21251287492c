package protocol_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

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

func ExampleRelease() {
	handler := func(ctx context.Context, w http.ResponseWriter) {
		if soldOut := true; soldOut {
			protocol.Release(ctx) // a retry may find it in stock again
			w.WriteHeader(http.StatusConflict)
		}
	}
	w := httptest.NewRecorder()
	handler(context.Background(), w)
	fmt.Println(w.Code)
	// Output: 409
}

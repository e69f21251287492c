package repriseclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
)

// A service that breaks the connection once.
func unreliable() *httptest.Server {
	first := true
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(http.StatusCreated)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "paid %s", body)
	}))
}

func ExampleNewTransport() {
	server := unreliable()
	defer server.Close()

	transport, err := repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/payments", strings.NewReader("12 EUR"))
	if err != nil {
		panic(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%d %s\n", resp.StatusCode, body)
	fmt.Println("replayed:", repriseclient.Replayed(resp))
	// Output:
	// 201 paid 12 EUR
	// replayed: true
}

// An operation that must survive a restart has its key stored before it is first sent, in
// the transaction that decides it. After a restart the program sends the pending
// operations, with their stored keys.
func ExampleWithKey() {
	server := unreliable()
	defer server.Close()
	transport, err := repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{
		AcceptOmitted: true, // the status is enough
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}

	// Rows of an outbox: INSERT INTO outbox (key, body) … beside the refund itself.
	type row struct{ key, body string }
	outbox := []row{{key: "refund-" + repriseclient.NewKey(), body: "12 EUR"}}

	// At the start of the program, and whenever there is a new row:
	for len(outbox) > 0 {
		next := outbox[0]
		ctx := repriseclient.WithKey(context.Background(), next.key)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/refunds", strings.NewReader(next.body))
		if err != nil {
			panic(err)
		}
		resp, err := client.Do(req)
		if err != nil || repriseclient.GaveUp(resp) {
			fmt.Println("not known yet: try the row again later, with its key")
			return
		}
		fmt.Println(resp.StatusCode)
		_ = resp.Body.Close()
		outbox = outbox[1:] // DELETE, or UPDATE … SET done
	}
	// Output: 201
}

// A call that ended without a response goes on later, with its key and the same bytes.
func ExampleUnknownOutcomeError() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests <= 3 {
			panic(http.ErrAbortHandler) // takes the request and does not respond
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	transport, err := repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{
		MaxAttempts: 3, Delay: time.Millisecond,
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}
	pay := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("12 EUR"))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		fmt.Println(resp.StatusCode)
		return resp.Body.Close()
	}

	err = pay(context.Background())
	var unknown *repriseclient.UnknownOutcomeError
	if errors.As(err, &unknown) {
		fmt.Printf("unknown after %d attempts\n", unknown.Attempts)
		err = pay(repriseclient.WithKey(context.Background(), unknown.Key()))
	}
	fmt.Println(err)
	// Output:
	// unknown after 3 attempts
	// 201
	// <nil>
}

func ExampleNotSent() {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // refuses connections from now on
	transport, err := repriseclient.NewTransport(nil, repriseclient.Config{MaxAttempts: 1})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL, strings.NewReader("12 EUR"))
	if err != nil {
		panic(err)
	}
	resp, err := client.Do(req)
	switch {
	case repriseclient.NotSent(err):
		fmt.Println("not paid: the payment may be given up, or sent later")
	case err != nil:
		fmt.Println("not known whether it was paid: ask the service, or send it again with its key")
	default:
		_ = resp.Body.Close()
	}
	// Output: not paid: the payment may be given up, or sent later
}

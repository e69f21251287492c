package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// transcript prints requests and responses for a person to read.
type transcript struct{ out io.Writer }

// reply is a response.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of a reply that passes through a channel
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// shown are the fields to print.
var shown = []string{"Location", "Idempotent-Replayed", "Retry-After", "Content-Type"}

func (t *transcript) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *transcript) title(n int, text string) { t.say("\n%d. %s", n, text) }

// request shows a request.
func (t *transcript) request(key, body string) {
	t.say("")
	t.say("   > POST /orders")
	if key != "" {
		t.say("   > Idempotency-Key: %s", key)
	}
	t.say("   > %s", body)
}

// response shows a response, and how many times it came.
func (t *transcript) response(r reply, times string) {
	t.say("   < %d %s%s", r.status, http.StatusText(r.status), times)
	for _, name := range shown {
		if value := r.header.Get(name); value != "" {
			t.say("   < %s: %s", name, value)
		}
	}
	t.say("   < %s", strings.TrimSpace(r.body))
}

func (t *transcript) exchange(key, body string, r reply) {
	t.request(key, body)
	t.response(r, "")
}

var errUnexpected = errors.New("unexpected result")

// check prints the observation, or fails. It prints no line for an empty text.
func (t *transcript) check(what string, ok bool) error {
	if !ok {
		t.say("   FAILED %s", what)
		return fmt.Errorf("%w: %s", errUnexpected, what)
	}
	if what != "" {
		t.say("   ok: %s", what)
	}
	return nil
}

// client reuses no connections, so that the one which a step drops on purpose affects no
// other request.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// post orders something. Without a key the request carries none.
func (d *demo) post(ctx context.Context, key, body string) (reply, error) {
	d.posts.Add(1)
	return d.send(ctx, http.MethodPost, "/orders", key, body)
}

// get reads the resource of a Location.
func (d *demo) get(ctx context.Context, path string) (reply, error) {
	return d.send(ctx, http.MethodGet, path, "", "")
}

func (d *demo) send(ctx context.Context, method, path, key, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Bearer acme-token")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(text)}, err
}

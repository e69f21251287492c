package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// transcript writes down a conversation for a person to read.
type transcript struct{ out io.Writer }

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of a reply that passes through a channel
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// shown are the fields that a person wants to see.
var shown = []string{"Location", "Idempotent-Replayed", "Retry-After", "Content-Type"}

func (t *transcript) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *transcript) title(n int, text string) { t.say("\n%d. %s", n, text) }

// request shows what is sent.
func (t *transcript) request(key, body string) {
	t.say("")
	t.say("   > POST /orders")
	if key != "" {
		t.say("   > Idempotency-Key: %s", key)
	}
	t.say("   > %s", body)
}

// response shows what came back, and how many times.
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

var errNotSo = errors.New("not what it should be")

// check says what was seen, or fails. What goes without saying is empty.
func (t *transcript) check(what string, ok bool) error {
	if !ok {
		t.say("   FAILED %s", what)
		return fmt.Errorf("%w: %s", errNotSo, what)
	}
	if what != "" {
		t.say("   ok: %s", what)
	}
	return nil
}

// client keeps no connections, so that one which is dropped on purpose disturbs nobody.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// post orders something. Without a key the request carries none.
func (d *demo) post(ctx context.Context, key, body string) (reply, error) {
	d.posts.Add(1)
	return d.send(ctx, http.MethodPost, "/orders", key, body)
}

// get reads what a Location names.
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

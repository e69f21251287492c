package reprise_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Every store selects records by these rules, with the clock of its server.
func TestQuerySelects(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	r := reprise.Record{State: reprise.StateLapsed, Label: "orders", ClaimedAt: at.Add(-time.Hour)}
	unreadable := reprise.Record{State: reprise.StateUnreadable}
	for _, c := range []struct {
		name string
		q    reprise.Query
		r    reprise.Record
		want bool
	}{
		{"everything", reprise.Query{}, r, true},
		{"its state", reprise.Query{States: reprise.States(reprise.StateLapsed)}, r, true},
		{"two states", reprise.Query{States: reprise.States(reprise.StateRunning, reprise.StateLapsed)}, r, true},
		{"another state", reprise.Query{States: reprise.States(reprise.StateCompleted)}, r, false},
		{"its label", reprise.Query{Label: "orders"}, r, true},
		{"another label", reprise.Query{Label: "order"}, r, false},
		{"its state, another label", reprise.Query{States: reprise.States(reprise.StateLapsed), Label: "refunds"}, r, false},
		{"as old as it is", reprise.Query{OlderThan: time.Hour}, r, true},
		{"older", reprise.Query{OlderThan: time.Hour + 1}, r, false},
		{"younger", reprise.Query{OlderThan: time.Hour - 1}, r, true},
		{"older, another state", reprise.Query{OlderThan: time.Minute, States: reprise.States(reprise.StateRunning)}, r, false},
		{"unreadable, of any age", reprise.Query{OlderThan: time.Hour}, unreadable, true},
		{"unreadable, of another state", reprise.Query{States: reprise.States(reprise.StateLapsed)}, unreadable, false},
		{"claimed after now, by another clock", reprise.Query{}, reprise.Record{State: reprise.StateLapsed, ClaimedAt: at.Add(time.Hour)}, true},
	} {
		if got := c.q.Selects(&c.r, at); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// The bounds of what an operator asks for, and decides, are included.
func TestBoundsOfAnInspection(t *testing.T) {
	t.Parallel()
	valid := func(q reprise.Query) error { return q.Validate() }
	resolve := func(r reprise.Resolution) error { return r.Validate() }
	large := make([]byte, reprise.MaxPayload+1)
	for name, c := range map[string]struct {
		err  error
		want string // in the text of the error; empty: there is none
	}{
		"one record":             {valid(reprise.Query{Limit: 1}), ""},
		"a full page":            {valid(reprise.Query{Limit: reprise.MaxPage}), ""},
		"no record":              {valid(reprise.Query{}), "Query.Limit"},
		"fewer than none":        {valid(reprise.Query{Limit: -1}), "Query.Limit"},
		"more than a page":       {valid(reprise.Query{Limit: reprise.MaxPage + 1}), "Query.Limit"},
		"of any age":             {valid(reprise.Query{Limit: 1, OlderThan: 0}), ""},
		"of a negative age":      {valid(reprise.Query{Limit: 1, OlderThan: -1}), "Query.OlderThan"},
		"of a label":             {valid(reprise.Query{Limit: 1, Label: strings.Repeat("l", reprise.MaxLabel)}), ""},
		"of too long a label":    {valid(reprise.Query{Limit: 1, Label: strings.Repeat("l", reprise.MaxLabel+1)}), "Query.Label"},
		"forgotten":              {resolve(reprise.Resolution{Forget: true}), ""},
		"kept":                   {resolve(reprise.Resolution{Fence: 1, Retention: reprise.MinDuration}), ""},
		"kept for long":          {resolve(reprise.Resolution{Fence: 1, Retention: reprise.MaxDuration}), ""},
		"without a fence":        {resolve(reprise.Resolution{Retention: time.Hour}), "Resolution.Fence"},
		"without a retention":    {resolve(reprise.Resolution{Fence: 1}), "Resolution.Retention"},
		"for too long":           {resolve(reprise.Resolution{Fence: 1, Retention: reprise.MaxDuration + 1}), "Resolution.Retention"},
		"as large as can be":     {resolve(reprise.Resolution{Fence: 1, Retention: time.Hour, Payload: large[1:]}), ""},
		"a byte larger":          {resolve(reprise.Resolution{Fence: 1, Retention: time.Hour, Payload: large}), "Resolution.Payload"},
		"forgotten, all ignored": {resolve(reprise.Resolution{Forget: true, Payload: large, Retention: -1}), ""},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, reprise.ErrInvalid) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

// The bounds of what the engine asks a store for are included.
func TestBoundsOfRequestsToAStore(t *testing.T) {
	t.Parallel()
	owner := reprise.NewOwner()
	long := strings.Repeat("l", reprise.MaxLabel+1)
	large := make([]byte, reprise.MaxPayload+1)
	claim := func(change func(*reprise.ClaimRequest)) error {
		r := reprise.ClaimRequest{Owner: owner, Lease: time.Minute, Retention: time.Hour}
		change(&r)
		return r.Validate()
	}
	renew := func(r reprise.RenewRequest) error { return r.Validate() }
	end := func(change func(*reprise.CompleteRequest)) error {
		r := reprise.CompleteRequest{Owner: owner, Retention: time.Hour}
		change(&r)
		return r.Validate()
	}
	for name, c := range map[string]struct {
		err  error
		want string // in the text of the error; empty: there is none
	}{
		"a claim":                     {claim(func(*reprise.ClaimRequest) {}), ""},
		"of nobody":                   {claim(func(r *reprise.ClaimRequest) { r.Owner = reprise.Owner{} }), "ClaimRequest.Owner"},
		"with a limit":                {claim(func(r *reprise.ClaimRequest) { r.MaxAttempts = 1 }), ""},
		"with a negative limit":       {claim(func(r *reprise.ClaimRequest) { r.MaxAttempts = -1 }), "ClaimRequest.MaxAttempts"},
		"with a long label":           {claim(func(r *reprise.ClaimRequest) { r.Label = long }), "ClaimRequest.Label"},
		"with a printable label":      {claim(func(r *reprise.ClaimRequest) { r.Label = " ~" }), ""},
		"with a control byte":         {claim(func(r *reprise.ClaimRequest) { r.Label = "\x1f" }), "the byte 0x1f"},
		"with a DEL":                  {claim(func(r *reprise.ClaimRequest) { r.Label = "\x7f" }), "the byte 0x7f"},
		"with the longest label":      {claim(func(r *reprise.ClaimRequest) { r.Label = long[1:] }), ""},
		"without a lease":             {claim(func(r *reprise.ClaimRequest) { r.Lease = 0 }), "ClaimRequest.Lease"},
		"without a retention":         {claim(func(r *reprise.ClaimRequest) { r.Retention = 0 }), "ClaimRequest.Retention"},
		"a renewal":                   {renew(reprise.RenewRequest{Owner: owner, Lease: reprise.MinDuration}), ""},
		"a renewal of nobody":         {renew(reprise.RenewRequest{Lease: time.Minute}), "RenewRequest.Owner"},
		"a renewal without a lease":   {renew(reprise.RenewRequest{Owner: owner}), "RenewRequest.Lease"},
		"a completion":                {end(func(*reprise.CompleteRequest) {}), ""},
		"a completion of nobody":      {end(func(r *reprise.CompleteRequest) { r.Owner = reprise.Owner{} }), "CompleteRequest.Owner"},
		"of a negative attempt":       {end(func(r *reprise.CompleteRequest) { r.Attempt = -1 }), "CompleteRequest.Attempt"},
		"of a later attempt":          {end(func(r *reprise.CompleteRequest) { r.Attempt = 7 }), ""},
		"completed with a long label": {end(func(r *reprise.CompleteRequest) { r.Label = long }), "CompleteRequest.Label"},
		"of the largest payload":      {end(func(r *reprise.CompleteRequest) { r.Payload = large[1:] }), ""},
		"of a byte more":              {end(func(r *reprise.CompleteRequest) { r.Payload = large }), "CompleteRequest.Payload"},
		"kept for no time":            {end(func(r *reprise.CompleteRequest) { r.Retention = 0 }), "CompleteRequest.Retention"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

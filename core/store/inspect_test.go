package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Every store selects records by these rules, with the clock of its server.
func TestQuerySelects(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	r := store.Record{State: store.StateLapsed, Policy: store.Policy{Label: "orders"}, ClaimedAt: at.Add(-time.Hour)}
	unreadable := store.Record{State: store.StateUnreadable}
	for _, c := range []struct {
		name string
		q    store.Query
		r    store.Record
		want bool
	}{
		{"everything", store.Query{}, r, true},
		{"its state", store.Query{States: store.States(store.StateLapsed)}, r, true},
		{"two states", store.Query{States: store.States(store.StateRunning, store.StateLapsed)}, r, true},
		{"another state", store.Query{States: store.States(store.StateCompleted)}, r, false},
		{"its label", store.Query{Label: "orders"}, r, true},
		{"another label", store.Query{Label: "order"}, r, false},
		{"its state, another label", store.Query{States: store.States(store.StateLapsed), Label: "refunds"}, r, false},
		{"its digits", store.Query{Digits: "00"}, r, true},
		{"other digits", store.Query{Digits: "000f"}, r, false},
		{"a probe", store.Query{}, store.Record{Policy: store.Policy{Label: store.ProbeLabel}}, false},
		{"a probe, by its label", store.Query{Label: store.ProbeLabel}, store.Record{Policy: store.Policy{Label: store.ProbeLabel}}, true},
		{"as old as it is", store.Query{OlderThan: time.Hour}, r, true},
		{"older", store.Query{OlderThan: time.Hour + 1}, r, false},
		{"younger", store.Query{OlderThan: time.Hour - 1}, r, true},
		{"older, another state", store.Query{OlderThan: time.Minute, States: store.States(store.StateRunning)}, r, false},
		{"unreadable, of any age", store.Query{OlderThan: time.Hour}, unreadable, true},
		{"unreadable, of another state", store.Query{States: store.States(store.StateLapsed)}, unreadable, false},
		{"claimed after now, by another clock", store.Query{}, store.Record{State: store.StateLapsed, ClaimedAt: at.Add(time.Hour)}, true},
	} {
		if got := c.q.Selects(&c.r, at); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// A set has room for states to come. An empty one selects every state.
func TestStatesHasRoom(t *testing.T) {
	t.Parallel()
	const last = store.RecordState(31)
	if set := store.States(last); !set.Has(last) || set.Has(store.StateRunning) {
		t.Errorf("the set of state %d is %b", last, set)
	}
}

// The bounds of an operator's requests and decisions are inclusive.
func TestBoundsOfAnInspection(t *testing.T) {
	t.Parallel()
	valid := func(q store.Query) error { return q.Validate() }
	resolve := func(r store.Resolution) error { return r.Validate() }
	large := make([]byte, store.MaxPayload+1)
	for name, c := range map[string]struct {
		err  error
		want string // in the text of the error; empty: there is none
	}{
		"one record":             {valid(store.Query{Limit: 1}), ""},
		"a full page":            {valid(store.Query{Limit: store.MaxPage}), ""},
		"no record":              {valid(store.Query{}), "Query.Limit"},
		"fewer than none":        {valid(store.Query{Limit: -1}), "Query.Limit"},
		"more than a page":       {valid(store.Query{Limit: store.MaxPage + 1}), "Query.Limit"},
		"of any age":             {valid(store.Query{Limit: 1, OlderThan: 0}), ""},
		"of a negative age":      {valid(store.Query{Limit: 1, OlderThan: -1}), "Query.OlderThan"},
		"of a label":             {valid(store.Query{Limit: 1, Label: strings.Repeat("l", store.MaxLabel)}), ""},
		"of too long a label":    {valid(store.Query{Limit: 1, Label: strings.Repeat("l", store.MaxLabel+1)}), "Query.Label"},
		"of an ID":               {valid(store.Query{Limit: 1, Digits: strings.Repeat("0f", 32)}), ""},
		"of more than an ID":     {valid(store.Query{Limit: 1, Digits: strings.Repeat("0", 65)}), "Query.Digits"},
		"of no digits":           {valid(store.Query{Limit: 1, Digits: "0F"}), "Query.Digits"},
		"forgotten":              {resolve(store.Resolution{Fence: 1, Forget: true}), ""},
		"kept":                   {resolve(store.Resolution{Fence: 1, Retention: store.MinDuration}), ""},
		"kept for long":          {resolve(store.Resolution{Fence: 1, Retention: store.MaxDuration}), ""},
		"without a fence":        {resolve(store.Resolution{Retention: time.Hour}), "Resolution.Fence"},
		"without a retention":    {resolve(store.Resolution{Fence: 1}), "Resolution.Retention"},
		"for too long":           {resolve(store.Resolution{Fence: 1, Retention: store.MaxDuration + 1}), "Resolution.Retention"},
		"as large as can be":     {resolve(store.Resolution{Fence: 1, Retention: time.Hour, Payload: large[1:]}), ""},
		"a byte larger":          {resolve(store.Resolution{Fence: 1, Retention: time.Hour, Payload: large}), "Resolution.Payload"},
		"forgotten, no fence":    {resolve(store.Resolution{State: store.StateUnreadable, Forget: true}), "Resolution.Fence"},
		"a result, forgotten":    {resolve(store.Resolution{State: store.StateExpired, Fence: 1, Forget: true}), ""},
		"a result, replaced":     {resolve(store.Resolution{State: store.StateCompleted, Fence: 1, Retention: time.Hour}), "only be forgotten"},
		"expired, replaced":      {resolve(store.Resolution{State: store.StateExpired, Fence: 1, Retention: time.Hour}), "only be forgotten"},
		"unreadable, answered":   {resolve(store.Resolution{State: store.StateUnreadable, Fence: 1, Retention: time.Hour}), "only be forgotten"},
		"unknown, answered":      {resolve(store.Resolution{State: store.StateUnknown, Fence: 1, Retention: time.Hour}), ""},
		"running":                {resolve(store.Resolution{State: store.StateRunning, Fence: 1, Forget: true}), "Resolution.State"},
		"in no state":            {resolve(store.Resolution{State: store.StateUnknown + 1, Fence: 1, Forget: true}), "Resolution.State"},
		"forgotten, all ignored": {resolve(store.Resolution{Fence: 1, Forget: true, Payload: large, Retention: -1}), ""},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, store.ErrInvalid) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

// The bounds of the engine's requests to a store are inclusive.
func TestBoundsOfRequestsToAStore(t *testing.T) {
	t.Parallel()
	owner := store.NewOwner()
	long := strings.Repeat("l", store.MaxLabel+1)
	large := make([]byte, store.MaxPayload+1)
	claim := func(change func(*store.ClaimRequest)) error {
		r := store.ClaimRequest{Owner: owner, Lease: time.Minute, Policy: store.Policy{Retention: time.Hour}}
		change(&r)
		return r.Validate()
	}
	renew := func(r store.RenewRequest) error { return r.Validate() }
	end := func(change func(*store.CompleteRequest)) error {
		r := store.CompleteRequest{Owner: owner, Policy: store.Policy{Retention: time.Hour}}
		change(&r)
		return r.Validate()
	}
	for name, c := range map[string]struct {
		err  error
		want string // in the text of the error; empty: there is none
	}{
		"a claim":                     {claim(func(*store.ClaimRequest) {}), ""},
		"of nobody":                   {claim(func(r *store.ClaimRequest) { r.Owner = store.Owner{} }), "ClaimRequest.Owner"},
		"with a limit":                {claim(func(r *store.ClaimRequest) { r.MaxAttempts = 1 }), ""},
		"with a negative limit":       {claim(func(r *store.ClaimRequest) { r.MaxAttempts = -1 }), "ClaimRequest.MaxAttempts"},
		"with a long label":           {claim(func(r *store.ClaimRequest) { r.Label = long }), "Policy.Label"},
		"with a printable label":      {claim(func(r *store.ClaimRequest) { r.Label = " ~" }), ""},
		"with a control byte":         {claim(func(r *store.ClaimRequest) { r.Label = "\x1f" }), "the byte 0x1f"},
		"with a DEL":                  {claim(func(r *store.ClaimRequest) { r.Label = "\x7f" }), "the byte 0x7f"},
		"with the longest label":      {claim(func(r *store.ClaimRequest) { r.Label = long[1:] }), ""},
		"without a lease":             {claim(func(r *store.ClaimRequest) { r.Lease = 0 }), "ClaimRequest.Lease"},
		"with a short horizon":        {claim(func(r *store.ClaimRequest) { r.Horizon = 1 }), "Policy.Horizon"},
		"with a negative horizon":     {end(func(r *store.CompleteRequest) { r.Horizon = -time.Hour }), "Policy.Horizon"},
		"remembered for too long":     {end(func(r *store.CompleteRequest) { r.Horizon = store.MaxDuration }), "the sum of Policy.Retention"},
		"without a retention":         {claim(func(r *store.ClaimRequest) { r.Retention = 0 }), "Policy.Retention"},
		"a renewal":                   {renew(store.RenewRequest{Owner: owner, Lease: store.MinDuration}), ""},
		"a renewal of nobody":         {renew(store.RenewRequest{Lease: time.Minute}), "RenewRequest.Owner"},
		"a renewal without a lease":   {renew(store.RenewRequest{Owner: owner}), "RenewRequest.Lease"},
		"a completion":                {end(func(*store.CompleteRequest) {}), ""},
		"a completion of nobody":      {end(func(r *store.CompleteRequest) { r.Owner = store.Owner{} }), "CompleteRequest.Owner"},
		"of a negative attempt":       {end(func(r *store.CompleteRequest) { r.Attempt = -1 }), "CompleteRequest.Attempt"},
		"of a later attempt":          {end(func(r *store.CompleteRequest) { r.Attempt = 7 }), ""},
		"completed with a long label": {end(func(r *store.CompleteRequest) { r.Label = long }), "Policy.Label"},
		"of the largest payload":      {end(func(r *store.CompleteRequest) { r.Payload = large[1:] }), ""},
		"of a byte more":              {end(func(r *store.CompleteRequest) { r.Payload = large }), "CompleteRequest.Payload"},
		"kept for no time":            {end(func(r *store.CompleteRequest) { r.Retention = 0 }), "Policy.Retention"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

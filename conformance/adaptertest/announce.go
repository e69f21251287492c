package adaptertest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

const policyLink = `<https://api.example.com/idempotency>; rel="describedby"`

var linking = protocol.Config{Announce: protocol.Announcing{PolicyURL: "https://api.example.com/idempotency"}}

var announceCases = []testCase{
	{
		conformance.Case{ID: "R37c", Rule: "With Expires a response that is kept before it leaves says until when it is replayed, and every replay says the same; no other response does.", Source: "profile, RFC 9651 3.3.7"},
		func(e *env) {
			const retention = time.Hour
			srv := e.serve(Options{Guard: protocol.Config{Announce: protocol.Announcing{Expires: true}, Retention: retention, Keep: protocol.Keeping{Headers: []string{"Location"}}}})
			large := Program{Status: 200, BodySize: 1<<20 + 1}
			for _, p := range []Program{created, streamed, large} {
				c := e.post(p).freshKey()
				before := time.Now()
				first, again := srv.run(c), srv.send(c)
				if at := srv.expiry(again); at.Before(before.Add(retention-time.Second)) || at.After(time.Now().Add(retention)) {
					srv.Errorf("the replay at %v expires at %v, want %v later", before, at, retention)
				}
				want := again.values(protocol.FieldExpires)
				for _, a := range []answer{first, srv.send(c)} {
					early := a.value(protocol.FieldReplayed) == "" && (len(p.Chunks) > 0 || p.BodySize > 0) // as a stream, before it was kept
					if got := a.values(protocol.FieldExpires); !slices.Equal(got, want) && (len(got) > 0 || !early) {
						srv.Errorf("answered %v\nand     %v", again, a)
					}
				}
			}
			own := created
			own.Headers = append(slices.Clip(own.Headers), Pair{protocol.FieldExpires, "@1"})
			released := created
			released.Release = true
			failed := created
			failed.Status = 401
			for _, row := range []struct {
				does Program
				want string
			}{{own, "@1"}, {released, ""}, {failed, ""}} {
				if a := srv.run(e.post(row.does).freshKey()); a.value(protocol.FieldExpires) != row.want {
					srv.Errorf("%s is %q, want %q: %v", protocol.FieldExpires, a.value(protocol.FieldExpires), row.want, a)
				}
			}
			if a := srv.run(e.post(created).withKeys()); len(a.values(protocol.FieldExpires)) > 0 {
				srv.Errorf("the response to a request without a key is %v", a)
			}
			if a := srv.refuses(e.post(created).withKeys("not a key"), protocol.CodeKeyInvalid); len(a.values(protocol.FieldExpires)) > 0 {
				srv.Errorf("a problem is %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R10d", Rule: "With PolicyURL the responses to requests with a key link to the policy, beside the links that they have.", Source: "draft 2.3, RFC 8288"},
		func(e *env) {
			srv := e.serve(Options{Guard: linking})
			linked := func(p Program, want ...string) {
				c := e.post(p).freshKey()
				w := srv.dial()
				first, again := w.ask(c), w.ask(c)
				srv.wantRun(first)
				srv.wantReplay(again, first)
				if got := first.values("Link"); !slices.Equal(got, want) {
					srv.Errorf("the first response has the links %q, want %q", got, want)
				}
			}
			linked(created, policyLink)
			linked(streamed, policyLink)
			own := created
			own.Headers = append(slices.Clip(own.Headers), Pair{"Link", "</2>; rel=next"}, Pair{"Link", "</1>; rel=prev"})
			linked(own, "</2>; rel=next", "</1>; rel=prev", policyLink)
			own.Headers = []Pair{{"Link", policyLink}}
			linked(own, policyLink)

			released := created
			released.Status = 429
			if a := srv.run(e.post(released).freshKey()); a.value("Link") != policyLink {
				srv.Errorf("a response that is not kept has the link %q", a.value("Link"))
			}
			if a := srv.run(e.post(created).withKeys()); len(a.values("Link")) > 0 {
				srv.Errorf("the response to a request without a key has the link %q", a.value("Link"))
			}
			c := e.post(created)
			srv.run(c)
			for code, c := range inOrder(map[protocol.Code]call{protocol.CodeKeyInvalid: c.withKeys("not a key"), protocol.CodeKeyReused: c.withBody("another")}) {
				if a := srv.refuses(c, code); a.value("Link") != policyLink {
					srv.Errorf("%s has the link %q, want %q", code, a.value("Link"), policyLink)
				}
			}
		},
	},
}

// expiry returns until when a response says that it is replayed.
func (srv *server) expiry(a answer) time.Time {
	srv.Helper()
	seconds, dated := strings.CutPrefix(a.value(protocol.FieldExpires), "@")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if !dated || err != nil {
		srv.Fatalf("%s is %q, want a Date of RFC 9651: %v", protocol.FieldExpires, a.value(protocol.FieldExpires), a)
	}
	return time.Unix(at, 0)
}

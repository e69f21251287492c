package adaptertest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// long is a lease or a retention that does not end while a case runs.
const long = time.Hour

// send sends a call, which has to be answered, on a connection of its own.
func (srv *server) send(c call) answer {
	srv.Helper()
	w := srv.dial()
	defer w.conn.Close()
	return w.ask(c)
}

// run sends a call whose handler has to run.
func (srv *server) run(c call) answer {
	srv.Helper()
	a := srv.send(c)
	srv.wantRun(a)
	return a
}

// wantRun demands that a is the response of a handler that ran for it, without any mark.
func (srv *server) wantRun(a answer) {
	srv.Helper()
	if a.value(ExecHeader) == "" {
		srv.Fatalf("the handler did not run: %v", a)
	}
	for _, mark := range []string{protocol.FieldReplayed, protocol.FieldStatus, protocol.FieldBody} {
		if v := a.values(mark); len(v) > 0 {
			srv.Fatalf("the answer of a run has %s: %q: %v", mark, v, a)
		}
	}
}

// replays sends a call that has to get the response first again.
func (srv *server) replays(c call, first answer) answer {
	srv.Helper()
	a := srv.send(c)
	srv.wantReplay(a, first)
	return a
}

// wantReplay demands that a is a replay of first: status, body and fields, except the
// fields that are never kept.
func (srv *server) wantReplay(a, first answer) {
	srv.Helper()
	if got := a.values(protocol.FieldReplayed); !slices.Equal(got, []string{"true"}) {
		srv.Fatalf("%s is %q, want one line with true: %v", protocol.FieldReplayed, got, a)
	}
	if a.status != first.status || a.body != first.body {
		srv.Fatalf("replayed %v\nof       %v", a, first)
	}
	if got, want := srv.kept(a), srv.kept(first); !maps.EqualFunc(got, want, slices.Equal) {
		srv.Fatalf("replayed the fields %q\nof                  %q", got, want)
	}
}

// kept returns the fields of a response that a replay repeats, by name in lower case.
func (srv *server) kept(a answer) map[string][]string {
	fields := map[string][]string{}
	for _, l := range a.fields {
		name := strings.ToLower(l.name)
		if _, never := neverRepeated[name]; !never && !strings.EqualFold(name, protocol.FieldReplayed) {
			fields[name] = append(fields[name], l.value)
		}
	}
	return fields
}

// neverRepeated are the fields that differ between a response and its replay, among those
// that a case may meet.
var neverRepeated = map[string]struct{}{
	"date": {}, "content-length": {}, "transfer-encoding": {}, "connection": {}, "keep-alive": {}, "trailer": {},
	"set-cookie": {}, "x-request-id": {}, "access-control-allow-origin": {},
}

// exec returns which run of its operation a response comes from, 0 where it is no
// handler's.
func (a answer) exec() int {
	n, err := strconv.Atoi(a.value(ExecHeader))
	if err != nil {
		return 0
	}
	return n
}

// refuses sends a call that has to get a problem and leaves the number of runs as it is.
func (srv *server) refuses(c call, code protocol.Code) answer {
	srv.Helper()
	before := srv.executions()
	a := srv.send(c)
	srv.wantProblem(a, c, code)
	srv.ran(before)
	return a
}

// otherProcess is an attempt of another process on the operation of a call, made at the
// store itself.
type otherProcess struct {
	at    *server
	claim store.ClaimRequest
}

// claims claims the operation of c, whose key is a bare one, as another process does:
// with the ID and the fingerprint that the package protocol derives.
func (srv *server) claims(c call) otherProcess {
	srv.Helper()
	fingerprint, err := protocol.DefaultFingerprint(c.request(), c.keys[0], []byte(c.body))
	if err != nil {
		srv.Fatal(err)
	}
	r := store.ClaimRequest{ID: store.DeriveID(c.tenant, "", c.keys[0]), Owner: store.NewOwner(), Fingerprint: fingerprint, Lease: long}
	r.Retention = long
	got, err := srv.store.Claim(srv.Context(), r)
	if err != nil || got.Outcome != store.Claimed {
		srv.Fatalf("claim at the store: %v, %v", got.Outcome, err)
	}
	return otherProcess{srv, r}
}

// completes ends the attempt with a payload.
func (other otherProcess) completes(payload string) {
	other.at.Helper()
	err := other.at.store.Complete(other.at.Context(), store.CompleteRequest{
		ID: other.claim.ID, Owner: other.claim.Owner, Payload: []byte(payload), Policy: store.Policy{Retention: other.claim.Retention},
	})
	if err != nil {
		other.at.Fatalf("complete at the store: %v", err)
	}
}

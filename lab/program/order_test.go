package program

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// listed is the output of list and stuck for programs.
type listed struct {
	Records []struct {
		ID    string `json:"id"`
		State string `json:"state"`
		Needs string `json:"needs"`
	} `json:"records"`
	Left    int `json:"not_shown"`
	Waiting int `json:"waiting_for_retry"`
}

func (f *fixture) listed(tb testing.TB, code int, args ...string) (l listed) {
	tb.Helper()
	if err := json.Unmarshal([]byte(runProgram(tb, f.env, code, append(args, "--json")...)), &l); err != nil {
		tb.Fatal(err)
	}
	return l
}

// TestListShowsTheFirstOfAllRecords: whatever the order in which a store lists its
// records, those that need a person come first, the oldest before the others.
func TestListShowsTheFirstOfAllRecords(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, f *fixture) {
		for i := range 150 {
			f.complete(t, store.DeriveID("tests", t.Name(), fmt.Sprint("done", i)), "orders", protocol.Response{Status: 201})
		}
		f.lapse(t, store.DeriveID("tests", t.Name(), "retry"), "orders")
		var want []string
		for i := range 7 {
			claim := claimRequest(store.DeriveID("tests", t.Name(), fmt.Sprint("stuck", i)), "payouts", time.Millisecond)
			claim.AtMostOnce = true
			f.claims(t, claim)
			f.awaitState(t, claim.ID, store.StateLapsed)
			want = append(want, claim.ID.String())
		}
		for limit, l := range map[int]listed{
			5: f.listed(t, 0, "list", "--limit", "5"), 6: f.listed(t, 1, "stuck", "--limit", "6"), 7: f.listed(t, 1, "stuck"),
		} {
			if len(l.Records) != limit {
				t.Fatalf("%d of %d records are shown", len(l.Records), limit)
			}
			for i, r := range l.Records {
				if r.ID != want[i] || r.Needs != "person" {
					t.Errorf("number %d of %d is %s, which needs %q; want %s", i, limit, r.ID, r.Needs, want[i])
				}
			}
		}
		if l := f.listed(t, 0, "list", "--limit", "5"); l.Left != 153 {
			t.Errorf("%d records are said to be left out", l.Left)
		}
		if l := f.listed(t, 1, "stuck", "--limit", "5"); l.Left != 2 || l.Waiting != 1 {
			t.Errorf("stuck leaves out %d, and counts %d that wait", l.Left, l.Waiting)
		}
	})
}

// TestStuckLeavesRetriesAlone: a job that runs stuck is not woken for a record that the
// next retry takes over.
func TestStuckLeavesRetriesAlone(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, f *fixture) {
		f.lapse(t, store.DeriveID("tests", t.Name(), "retry"), "orders")
		if l := f.listed(t, 0, "stuck"); len(l.Records) != 0 || l.Waiting != 1 {
			t.Errorf("%+v", l)
		}
		if l := f.listed(t, 1, "stuck", "--all"); len(l.Records) != 1 || l.Records[0].Needs != "retry" {
			t.Errorf("%+v", l)
		}
	})
}

// TestProbesAreNotListed: the records of doctor, and of Open in a service, are in no
// listing at any time.
func TestProbesAreNotListed(t *testing.T) {
	t.Parallel()
	durable := func(tb testing.TB) *fixture { // else doctor ends before its trial
		tb.Helper()
		server := servers.StartPostgres(tb, "fsync=on")
		return postgresFixture(tb, labtest.SetupPostgres(tb, server), server.URL())
	}
	test := func(t *testing.T, f *fixture, code int) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		shown := make(chan []store.Record)
		inspector, _ := store.As[store.Inspector](f.store)
		go func() {
			var seen []store.Record
			for ctx.Err() == nil {
				if page, err := inspector.List(ctx, store.Query{Limit: 10}); err == nil {
					seen = append(seen, page.Records...)
				}
			}
			shown <- seen
		}()
		for range 5 {
			runProgram(t, append(f.env, "REPRISE_TIMEOUT=30s"), code, "doctor")
		}
		cancel()
		if seen := <-shown; len(seen) > 0 {
			t.Errorf("%d records are listed meanwhile, such as %+v", len(seen), seen[0])
		}
		probe := claimRequest(store.DeriveID("tests", t.Name(), "of a probe"), store.ProbeLabel, time.Millisecond)
		probe.AtMostOnce = true
		f.claims(t, probe)
		f.awaitState(t, probe.ID, store.StateLapsed)
		f.listed(t, 1, "list")
		f.listed(t, 0, "stuck")
		if l := f.listed(t, 0, "list", "--label", store.ProbeLabel); len(l.Records) != 1 {
			t.Errorf("a query for the label of probes shows %+v", l)
		}
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, kinds[0].setup(t), 1)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, durable(t), 0)
	})
}

package console_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// A listing shows the status of each response, and those of failures in red.
func TestListShowsKeptFailures(t *testing.T) {
	inTime(t, func(b *bench) {
		for status, failed := range map[int]bool{200: false, 303: false, 404: false, 503: true} {
			id := b.answered(strconv.Itoa(status), protocol.Response{Status: status})
			got := b.get("/records?text=" + id.Short())
			b.want("list", got, 200, fmt.Sprintf(">%d</span>", status))
			if red := strings.Contains(got.raw, fmt.Sprintf(`<span class="state failure">%d</span>`, status)); red != failed {
				b.Errorf("%d is shown as a failure: %t", status, red)
			}
			if red := strings.Contains(b.get(recordPage(id)).text, "a failure is kept"); red != failed {
				b.Errorf("the page of %d says that a failure is kept: %t", status, red)
			}
		}
	})
}

func TestListIsFilteredByStatePolicyAndText(t *testing.T) {
	inTime(t, func(b *bench) {
		ids := map[string]store.ID{}
		for name, r := range map[string]store.ClaimRequest{
			"acme":    {Policy: store.Policy{Label: "payments"}, Description: "POST /payments of Acme"},
			"initech": {Policy: store.Policy{Label: "refunds", AtMostOnce: true}, Description: "POST /refunds of Initech", Lease: time.Second},
		} {
			ids[name] = store.DeriveID("tenant", "", name)
			b.claimed(ids[name], r)
		}
		got := b.begin(operation("bank"))
		must(b, got.Attempt.Unknown("Bank closed at five"))
		ids["bank"] = got.Attempt.ID()
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		for query, want := range map[string]string{
			"":                               "acme initech bank",
			"text=acme":                      "acme",
			"text=POST+/":                    "acme initech",
			"text=closed":                    "bank",
			"text=" + ids["bank"].Short():    "bank",
			"text=nothing":                   "",
			"label=refunds":                  "initech",
			"label=refunds&text=acme":        "",
			"state=stuck":                    "initech bank",
			"state=lapsed":                   "initech",
			"state=running&text=of&older=1s": "acme",
		} {
			page := b.get("/records?" + query)
			b.want(query, page, 200)
			for name, id := range ids {
				if shown := strings.Contains(page.raw, id.String()); shown != strings.Contains(want, name) {
					b.Errorf("%q: %s is shown: %t", query, name, shown)
				}
			}
		}
	})
}

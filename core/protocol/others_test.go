package protocol_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// To the store, and so in time, a key that another tenant has used or is using is like
// one that is unused: the same calls have the same results. A scope that is the same for
// both tenants shows the difference.
func TestKeysOfOthersLookUnused(t *testing.T) {
	t.Parallel()
	calls := func(state, attacker, key string) []string {
		calls := &called{Store: memstore.New()}
		engine := must(reprise.New(calls, reprise.Config{}))
		defer engine.Close(context.WithoutCancel(t.Context()))
		guard := must(protocol.Over(engine, protocol.Config{}))
		ask := func(tenant, key string) protocol.Admission {
			return guard.Admit(t.Context(), protocol.Request{
				Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {key}}, Body: strings.NewReader("body"),
			}, func() (string, error) { return tenant, nil })
		}
		victim := ask("victim", "k")
		defer victim.Exchange.Close()
		if end := func() { victim.Exchange.Finish(protocol.Captured{Status: http.StatusCreated}) }; state == "completed" {
			end()
		} else {
			defer end()
		}
		calls.list = nil
		if a := ask(attacker, key); a.Exchange != nil {
			a.Exchange.Finish(protocol.Captured{Status: http.StatusCreated})
			a.Exchange.Close()
		}
		return calls.list
	}
	for _, state := range []string{"completed", "running"} {
		unused, others, own := calls(state, "attacker", "unused"), calls(state, "attacker", "k"), calls(state, "victim", "k")
		if !slices.Equal(others, unused) || slices.Equal(own, unused) {
			t.Errorf("%s: the key of another leads to %q, an unused one to %q, and one's own to %q", state, others, unused, own)
		}
	}
}

// called is a store that lists its calls and their results.
type called struct {
	store.Store

	list []string
}

func (c *called) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	res, err := c.Store.Claim(ctx, r)
	c.list = append(c.list, "claim "+res.Outcome.String())
	return res, err
}

func (c *called) Complete(ctx context.Context, r store.CompleteRequest) error {
	err := c.Store.Complete(ctx, r)
	c.list = append(c.list, "complete")
	return err
}

func (c *called) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	err := c.Store.Release(ctx, id, owner)
	c.list = append(c.list, "release")
	return err
}

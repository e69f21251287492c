package console_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/console"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

// A key is found as a transcript prints it, in its quotes, and as the client knows it. It
// is in no log.
func TestFindReadsAKeyWithItsQuotes(t *testing.T) {
	inTime(t, func(b *bench) {
		found := func(form url.Values, id store.ID) {
			b.Helper()
			form.Set("store", "main")
			if got := b.post("/find", form); got.status != 303 || got.header.Get("Location") != "records/main/"+id.String() {
				b.Errorf("%s: %d to %q, want %s", form, got.status, got.header.Get("Location"), id)
			}
		}
		for typed, key := range map[string]string{
			`"order-17"`: "order-17", `order-17`: "order-17", "\"order-17\"\n": "order-17", `"a\"b"`: `a"b`,
		} {
			found(url.Values{"scope": {"tenant"}, "key": {typed}}, store.DeriveID("tenant", "", key))
		}
		found(url.Values{"unscoped": {"1"}, "key": {"order-17"}}, store.DeriveID(operate.SharedScope, "", "order-17"))
		b.want("a key that is none", b.post("/find", url.Values{"store": {"main"}, "scope": {"tenant"}, "key": {`"order`}}), 422, "key")
		b.want("nothing", b.post("/find", url.Values{"store": {"main"}}), 422, "Fill in")
		if strings.Contains(b.log.String(), "order") {
			b.Errorf("the log has the key: %s", &b.log)
		}
	})
}

// Logs show 12 digits of an ID. 8 or more of them are enough to find it, unless several
// records begin with them: then these are listed.
func TestFindTakesTheBeginningOfAnID(t *testing.T) {
	inTime(t, func(b *bench) {
		id, _ := b.lapsed("stuck")
		twins := []store.ID{{0xaa, 0xbb, 0xcc, 0xdd, 1}, {0xaa, 0xbb, 0xcc, 0xdd, 2}}
		for _, twin := range twins {
			b.claimed(twin, store.ClaimRequest{})
		}
		find := func(digits string) page { return b.post("/find", url.Values{"store": {"main"}, "id": {digits}}) }
		for _, digits := range []string{id.Short(), strings.ToUpper(id.Short()), " " + id.String()[:8] + " ", id.String()} {
			if got := find(digits); got.status != 303 || got.header.Get("Location") != "records/main/"+id.String() {
				b.Errorf("%q: %d to %q: %s", digits, got.status, got.header.Get("Location"), got.text)
			}
		}
		b.want("two", find("aabbccdd"), 422, "Several records begin with these digits", "records/main/"+twins[0].String(), "records/main/"+twins[1].String())
		b.want("seven", find(id.String()[:7]), 422, "at least the first 8")
		b.want("none", find("0123456789ab"), 404, "No record begins with these digits", "a client's key, find it by its scope")
		if got := find("s3cret-key"); got.status != 422 || strings.Contains(got.text, "s3cret-key") {
			b.Errorf("a key in the place of the ID: %d: %s", got.status, got.text)
		}
	})
}

// The beginning of an ID is searched for once at a time: each search reads the whole
// store.
func TestOneSearchReadsTheStore(t *testing.T) {
	inTime(t, func(b *bench) {
		reads := make(chan struct{}, 1)
		endless := faulty{b.store, func(ctx context.Context) error { reads <- struct{}{}; <-ctx.Done(); return ctx.Err() }, nil}
		b.serve([]console.Store{{Name: "main", Store: endless}}, look, console.Config{})
		find := func(digits string) page { return b.post("/find", url.Values{"store": {"main"}, "id": {digits}}) }
		ended := make(chan page)
		for range 2 {
			go func() { ended <- find("0123456789ab") }()
			<-reads
			b.want("a second search", find("aabbccdd"), 429, "Another search")
			if got := find(strings.Repeat("ab", 32)); got.status != 303 {
				b.Errorf("a whole ID: %d", got.status)
			}
			b.want("the first search", <-ended, 504, "not read to its end in 20")
		}
	})
}

// claimed claims an operation as another process does, for an hour unless r says more.
func (b *bench) claimed(id store.ID, r store.ClaimRequest) store.Owner {
	b.Helper()
	r.ID, r.Owner, r.Retention = id, store.NewOwner(), time.Hour
	if r.Lease == 0 {
		r.Lease = time.Hour
	}
	if granted, err := b.store.Claim(b.Context(), r); err != nil || granted.Outcome != store.Claimed {
		b.Fatalf("claim: %+v, %v", granted, err)
	}
	return r.Owner
}

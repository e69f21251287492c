package operate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

// A key that is pasted with its quotes, as a log has it, is the key of its request.
func TestKeyIDReadsAKeyAsAGuardDoes(t *testing.T) {
	t.Parallel()
	want := store.DeriveID("tenant", "/orders", "pay-7")
	for _, text := range []string{`pay-7`, `"pay-7"`, `  "pay-7"  `, "\tpay-7 ", `"pay-7";v=1`} {
		if id, err := operate.KeyID("tenant", "/orders", text); err != nil || id != want {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	if id, err := operate.KeyID("tenant", "", `"a \"b\" c"`); err != nil || id != store.DeriveID("tenant", "", `a "b" c`) {
		t.Errorf("with escapes: %v, %v", id, err)
	}
	for _, text := range []string{"", " ", `""`, `"pay-7`, `pay 7`, `"pay-7" x`, "pay\x00", strings.Repeat("k", 4097)} {
		if id, err := operate.KeyID("tenant", "", text); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "pay") {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	if _, err := operate.KeyID("", "", "pay-7"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("without a scope: %v", err)
	}
}

// pages is an inspector with a listing of these IDs, two a page, each shown twice.
type pages struct {
	store.Inspector
	ids    []store.ID
	listed *int
}

func (p pages) List(_ context.Context, q store.Query) (store.Page, error) {
	*p.listed++
	at := len(q.After)
	page := store.Page{Scanned: 2}
	for _, id := range p.ids[at:min(at+2, len(p.ids))] {
		page.Records = append(page.Records, store.Record{ID: id}, store.Record{ID: id})
	}
	if at+2 < len(p.ids) {
		page.Next = strings.Repeat("x", at+2)
	}
	return page, nil
}

func TestFindIDReadsAllOrTheFirstDigits(t *testing.T) {
	t.Parallel()
	var ids []store.ID
	for i := range 9 {
		ids = append(ids, store.ID{1, 2, 3, byte(i)})
	}
	ids = append(ids, store.ID{1, 2, 3, 4, 5})
	listed := 0
	in := pages{ids: ids, listed: &listed}
	find := func(text string) (store.ID, error) { return operate.FindID(t.Context(), in, text, nil) }
	for text, want := range map[string]store.ID{
		ids[7].String(): ids[7], " " + strings.ToUpper(ids[7].String()) + "\n": ids[7], store.ID{9}.String(): {9},
		"01020307": ids[7], ids[7].Short(): ids[7], "0102030405": ids[9],
	} {
		if id, err := find(text); err != nil || id != want {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	for text, want := range map[string]error{
		"": store.ErrInvalid, "0102030": store.ErrInvalid, "0102030x": store.ErrInvalid, ids[0].String() + "0": store.ErrInvalid,
		"ffffffff": store.ErrNotFound,
	} {
		if id, err := find(text); !errors.Is(err, want) {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	if _, err := find("order-17"); err == nil || strings.Contains(err.Error(), "order-17") {
		t.Errorf("the error for a key: %v", err)
	}
	listed = 0
	_, err := find("01020304")
	var several *operate.AmbiguousError
	if !errors.As(err, &several) || len(several.Records) != 2 ||
		!slices.ContainsFunc(several.Records, func(r store.Record) bool { return r.ID == ids[9] }) || listed != 5 {
		t.Errorf("%v after %d pages", err, listed)
	}
}

func TestFindIDStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := operate.FindID(ctx, memstore.New(), "01020304", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

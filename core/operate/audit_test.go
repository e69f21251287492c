package operate_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

func TestAuditLogHasEverythingAndNoSecret(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const secretKey, secretScope, secretBody = "secret-key", "secret-scope", "secret-body"
		log := new(bytes.Buffer)
		handler := slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})
		st := &teststore.Hooked{Store: memstore.New()}
		st.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
			return fmt.Errorf("%w: reply lost", cmp.Or(st.Store.Complete(ctx, r), store.ErrUnknown))
		}
		engine := must(reprise.New(st, reprise.Config{Observer: operate.NewAuditLog(slog.New(handler))}))
		defer engine.Close(t.Context())
		want := func(op reprise.Operation, outcome reprise.Outcome) *reprise.Attempt {
			res := must(engine.Begin(t.Context(), op))
			if res.Outcome != outcome {
				t.Fatalf("Begin answered %v, want %v", res.Outcome, outcome)
			}
			return res.Attempt
		}
		op := reprise.Operation{Scope: secretScope, Key: secretKey, Endpoint: "secret-endpoint", Wait: time.Second}
		a := want(op, reprise.Claimed)
		time.Sleep(15 * time.Second) // half of its lease
		want(op, reprise.InProgress)
		if end, err := a.Complete(reprise.Completion{Payload: []byte(secretBody)}); err != nil || end.End != reprise.EndUnrecorded {
			t.Fatalf("completed: %v, %v", end.End, err)
		}
		st.Heal()
		time.Sleep(time.Minute)
		want(op, reprise.Replayed)
		_, err := engine.Begin(t.Context(), reprise.Operation{Scope: secretScope, Key: secretKey, MaxAttempts: -1})
		if !errors.Is(err, store.ErrInvalid) {
			t.Fatal(err)
		}
		synctest.Wait()
		text := log.String() + err.Error()
		for _, secret := range []string{secretKey, secretScope, secretBody, "secret"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in\n%s", secret, text)
			}
		}
		short := store.DeriveID(op.Scope, op.Endpoint, op.Key).Short()
		for _, want := range []string{
			`"level":"INFO","msg":"idempotency claimed","outcome":"claimed","id":"` + short, `"level":"DEBUG","msg":"idempotency renewed"`,
			`"level":"INFO","msg":"idempotency in-progress"`, `"level":"ERROR","msg":"idempotency store-error"`,
			`"level":"ERROR","msg":"idempotency unrecorded"`, `"level":"INFO","msg":"idempotency completed"`,
			`"level":"INFO","msg":"idempotency replayed"`, `"attempt":1,"fence":`, `"error":"reprise: outcome of the store operation unknown: reply lost"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing in\n%s", want, text)
			}
		}
	})
}

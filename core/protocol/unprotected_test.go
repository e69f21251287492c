package protocol_test

import (
	"context"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Without a claim there is no record that Config.Keep could decide about.
func TestR40PolicyIsNotAskedAboutARunWithoutAClaim(t *testing.T) {
	t.Parallel()
	decided, annotated := 0, 0
	cfg := protocol.Config{
		FailOpen: true,
		Engine:   reprise.Config{Observer: reprise.Observers()},
		Keep: protocol.Keeping{
			Decide:   func(protocol.Ending) protocol.Decision { decided++; return protocol.ReleaseKey },
			Annotate: func(context.Context) string { annotated++; return "note" },
		},
	}
	away := setupOver(t, broken{memstore.New(), store.ErrUnavailable}, cfg)
	if w := away.run("k", answering("unprotected")); w.Code != 201 || w.Header().Get("Idempotency-Status") != "unprotected" {
		t.Errorf("answered %d %v", w.Code, w.Header())
	}
	if decided+annotated > 0 {
		t.Errorf("decided %d times, annotated %d times", decided, annotated)
	}
	setupOver(t, memstore.New(), cfg).run("k", answering("released"))
	if decided != 1 || annotated != 1 {
		t.Errorf("decided %d times, annotated %d times, with a claim", decided, annotated)
	}
}

package protocol_test

import (
	"slices"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func describedGuard(t *testing.T, cfg protocol.Config) *protocol.Guard {
	t.Helper()
	engine := must(reprise.New(memstore.New(), reprise.Config{}))
	guard := must(protocol.Over(engine, cfg))
	return guard
}

func TestGuardListsTheProblemsThatItCanGive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code protocol.Code
		cfg  protocol.Config // of a guard that gives it
	}{
		{protocol.CodeKeyMissing, protocol.Config{Required: true}},
		{protocol.CodeResultExpired, protocol.Config{Horizon: time.Hour}},
	} {
		has := func(g *protocol.Guard) bool {
			return slices.ContainsFunc(g.Problems(), func(p protocol.Problem) bool { return p.Code == c.code })
		}
		if !has(describedGuard(t, c.cfg)) || has(describedGuard(t, protocol.Config{})) {
			t.Errorf("%s is missing, or a guard without %+v lists it", c.code, c.cfg)
		}
	}
	retry := map[protocol.Code]time.Duration{protocol.CodeInProgress: time.Second, protocol.CodeStoreUnavailable: 2 * time.Second}
	for _, p := range describedGuard(t, protocol.Config{}).Problems() {
		if p.RetryAfter != retry[p.Code] {
			t.Errorf("%s asks for a retry after %v, want %v", p.Code, p.RetryAfter, retry[p.Code])
		}
		if p.Code == protocol.CodeNotApplied || p.Code == protocol.CodeResponseTooLarge {
			t.Errorf("%s is listed without a transactional store", p.Code)
		}
	}
}

func TestKeepsAsksDecideAndSurvivesItsPanic(t *testing.T) {
	t.Parallel()
	panics := func(protocol.Ending) protocol.Decision { panic("a bug") }
	for _, c := range []struct {
		cfg    protocol.Config
		status int
		want   bool
	}{
		{protocol.Config{}, 201, true},
		{protocol.Config{}, 429, false},
		{protocol.Config{}, 500, false},
		{protocol.Config{Preset: reprise.AtMostOnce}, 500, true},
		{protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision { return protocol.KeepResponse }}}, 500, true},
		{protocol.Config{Keep: protocol.Keeping{Decide: panics}}, 201, false},
		{protocol.Config{Keep: protocol.Keeping{Decide: panics}, Preset: reprise.AtMostOnce}, 201, true},
	} {
		if got := describedGuard(t, c.cfg).Keeps(c.status); got != c.want {
			t.Errorf("preset %v: keeps %d: %v, want %v", c.cfg.Preset, c.status, got, c.want)
		}
	}
}

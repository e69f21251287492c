// Package probe decides whether a store can be opened: by the findings of its check, and
// by a trial of every operation on a record that it deletes again. Otherwise, the first
// sign of a problem that the settings of a server do not show would be a handler that has
// run and whose response cannot be stored.
package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// duration bounds a probe. Its record is also replayed for that long, so that the purge
// deletes the row of a probe whose process died.
const duration = 10 * time.Second

// Judge checks a store. It logs the warnings among the findings, and returns the unsafe
// ones as an error. name is that of the database.
func Judge(ctx context.Context, name string, logger *slog.Logger, st store.Checker) error {
	findings, err := st.Check(ctx)
	if err != nil {
		return err
	}
	var unsafe []string
	for _, f := range findings {
		if f.Severity == store.Unsafe {
			unsafe = append(unsafe, f.Code+": "+f.Detail)
			continue
		}
		logger.LogAttrs(ctx, slog.LevelWarn, "reprise: "+f.Detail, slog.String("store", name), slog.String("code", f.Code))
	}
	if len(unsafe) > 0 {
		return fmt.Errorf("%w: %s: open: %s", store.ErrMisconfigured, name, strings.Join(unsafe, "; "))
	}
	return nil
}

// AtLeast reports whether a version such as 10.11.19-MariaDB or 3.46.1 is major.minor or
// newer.
func AtLeast(version string, major, minor int) bool {
	var x, y int
	_, err := fmt.Sscanf(version, "%d.%d", &x, &y)
	return err == nil && (x > major || x == major && y >= minor)
}

// Probe is a trial of a store.
type Probe struct {
	Name     string                                // of the database, in error texts
	ID       store.ID                              // of the record; zero: a random one
	Store    store.Store                           // the store
	Rival    store.Store                           // over the same records
	LostRace error                                 // the error of a call that loses every race; nil: none
	Read     func(context.Context, store.ID) error // reads the record
	Delete   func(context.Context, store.ID) error // deletes the record, and fails where there is none
}

// Run tries every operation.
func (p *Probe) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	const payload = "probe"
	r := store.ClaimRequest{Owner: store.NewOwner(), Lease: duration, Policy: store.Policy{Label: store.ProbeLabel, Retention: duration, Horizon: duration}}
	if r.ID = p.ID; r.ID == (store.ID{}) {
		_, _ = rand.Read(r.ID[:]) // never returns an error
	}
	second := r
	second.Owner, second.Waiting = store.NewOwner(), true // a store may claim in another way for those that wait
	defer func() {
		if err != nil {
			_ = p.Rival.Release(ctx, r.ID, second.Owner)
			_ = p.Store.Release(ctx, r.ID, r.Owner)
			_ = p.Delete(ctx, r.ID)
		}
	}()
	var held store.ClaimResult
	claim := func() (err error) {
		held, err = p.claim(ctx, p.Store, r, store.Claimed)
		return err
	}
	refuse := func() error {
		_, err := p.claim(ctx, p.Rival, second, store.InProgress)
		return err
	}
	renew := func() error {
		got, err := p.Store.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: duration}})
		if err == nil && got[0] != store.Renewed {
			return Unexpected(got[0], store.Renewed)
		}
		return err
	}
	release := func() error { return p.Store.Release(ctx, r.ID, r.Owner) }
	unknown := func() error {
		return p.Store.Unknown(ctx, store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "probe"})
	}
	complete := func() error {
		return p.Store.Complete(ctx, store.CompleteRequest{
			ID: r.ID, Owner: r.Owner, Payload: []byte(payload), Policy: r.Policy, Attempt: held.Attempt, Fence: held.Fence,
		})
	}
	replay := func() error {
		got, err := p.claim(ctx, p.Rival, second, store.Completed)
		if err == nil && string(got.Payload) != payload {
			return Unexpected("another payload", payload)
		}
		return err
	}
	read := func() error { return p.Read(ctx, r.ID) }
	remove := func() error { return p.Delete(ctx, r.ID) }
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"claim", claim},
		{"claim again", claim},
		{"refuse a second claim", refuse},
		{"renew", renew},
		{"release", release},
		{"claim after the release", claim},
		{"mark an outcome as unknown", unknown},
		{"delete the record", remove},
		{"claim after that", claim},
		{"complete", complete},
		{"replay", replay},
		{"read", read},
		{"delete", remove},
	} {
		if err := step.do(); err != nil {
			if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrNotApplied) || p.LostRace != nil && errors.Is(err, p.LostRace) {
				err = fmt.Errorf("%w: %w", store.ErrMisconfigured, err) // no other attempt has this record
			}
			return fmt.Errorf("%s: open: trying to %s: %w", p.Name, step.name, err)
		}
	}
	return nil
}

// claim claims r, and returns an error if the outcome is not want.
func (p *Probe) claim(ctx context.Context, st store.Store, r store.ClaimRequest, want store.Outcome) (store.ClaimResult, error) {
	got, err := st.Claim(ctx, r)
	if err == nil && got.Outcome != want {
		err = Unexpected(got.Outcome, want)
	}
	return got, err
}

// Unexpected is the error for a result that a correct server does not give.
func Unexpected(got, want any) error {
	return fmt.Errorf("%w: the answer is %v, want %v", store.ErrMisconfigured, got, want)
}

package table

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// A probe takes at most this long, and its record is replayed for as long: a probe whose
// process dies leaves one row to the purge.
const probeTime = 10 * time.Second

// probe tries every operation of st on a new record, and deletes it. The catalogue does
// not show row-level security policies, triggers and the functions that a server lacks;
// they would be found when a handler has run and its response cannot be stored. The store
// rival has the same table, and shares no memory with st.
func (t *Table) probe(ctx context.Context, st, rival store.Store) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	const payload = "probe"
	r := store.ClaimRequest{Owner: store.NewOwner(), Lease: probeTime, Policy: store.Policy{Label: store.ProbeLabel, Retention: probeTime, Horizon: probeTime}}
	_, _ = rand.Read(r.ID[:]) // never fails: it ends the program instead
	second := r
	second.Owner = store.NewOwner()
	defer func() {
		if err != nil {
			_ = rival.Release(ctx, r.ID, second.Owner)
			_ = st.Release(ctx, r.ID, r.Owner)
			_ = t.deleteProbe(ctx, r.ID)
			err = fmt.Errorf("%w%s", err, t.rowSecurityAdvice(ctx))
		}
	}()
	var held store.ClaimResult
	claim := func() (err error) {
		held, err = claimFor(ctx, st, r, store.Claimed)
		return err
	}
	refuse := func() error {
		got, err := claimFor(ctx, rival, second, store.InProgress)
		if got.Outcome == store.Claimed {
			return fmt.Errorf("%w; the server has to offer advisory locks that exclude another session", err)
		}
		return err
	}
	renew := func() error {
		got, err := st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: probeTime}})
		if err == nil && got[0] != store.Renewed {
			return unexpected(got[0], store.Renewed)
		}
		return err
	}
	release := func() error { return st.Release(ctx, r.ID, r.Owner) }
	unknown := func() error {
		return st.Unknown(ctx, store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "probe"})
	}
	complete := func() error {
		return st.Complete(ctx, store.CompleteRequest{
			ID: r.ID, Owner: r.Owner, Payload: []byte(payload), Policy: r.Policy, Attempt: held.Attempt, Fence: held.Fence,
		})
	}
	replay := func() error {
		got, err := claimFor(ctx, rival, second, store.Completed)
		if err == nil && string(got.Payload) != payload {
			return unexpected("another payload", payload)
		}
		return err
	}
	locks := func() error { // the functions that no other step is certain to call
		return t.Run(ctx, "lock", "SELECT pg_advisory_xact_lock($1::bigint), pg_try_advisory_xact_lock($1::bigint)",
			func(rows pgx.Rows) error { return nil }, int64(binary.BigEndian.Uint64(r.ID[:]))) //nolint:gosec // any 64 bits do
	}
	read := func() error {
		_, err := t.Look(ctx, "inspect", r.ID)
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"take advisory locks", locks},
		{"claim", claim},
		{"claim again", claim},
		{"refuse a second claim", refuse},
		{"renew", renew},
		{"release", release},
		{"claim after the release", claim},
		{"mark an outcome as unknown", unknown},
		{"delete the record", func() error { return t.deleteProbe(ctx, r.ID) }},
		{"claim after that", claim},
		{"complete", complete},
		{"replay", replay},
		{"read", read},
		{"delete", func() error { return t.deleteProbe(ctx, r.ID) }},
	} {
		if err := step.do(); err != nil {
			if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrNotApplied) {
				err = fmt.Errorf("%w: %w", store.ErrMisconfigured, err) // no other attempt has this record
			}
			return fmt.Errorf("postgres: open: trying to %s: %w", step.name, err)
		}
	}
	return nil
}

// claimFor claims r, and demands an outcome.
func claimFor(ctx context.Context, st store.Store, r store.ClaimRequest, want store.Outcome) (store.ClaimResult, error) {
	got, err := st.Claim(ctx, r)
	switch {
	case err == nil && got.Outcome != want:
		err = unexpected(got.Outcome, want)
	case errors.Is(err, ErrLostRace): // no other claim has this ID
		err = fmt.Errorf("%w: %w", store.ErrMisconfigured, err)
	}
	return got, err
}

func unexpected(got, want any) error {
	return fmt.Errorf("%w: the answer is %v, want %v", store.ErrMisconfigured, got, want)
}

// deleteProbe deletes the record of a probe.
func (t *Table) deleteProbe(ctx context.Context, id store.ID) error {
	deleted := false
	err := t.Run(ctx, "delete", "DELETE FROM "+t.Names.records+" WHERE id = $1::bytea RETURNING id", func(rows pgx.Rows) error {
		deleted = rows.Next()
		return nil
	}, id[:])
	if err == nil && !deleted {
		return unexpected("no row", "the row of the record")
	}
	return err
}

// rowSecurityAdvice returns the remedy where row-level security applies to this role.
func (t *Table) rowSecurityAdvice(ctx context.Context) string {
	var (
		active bool
		role   string
	)
	err := t.Run(ctx, "check", "SELECT row_security_active($1::text::regclass), current_user::text", func(rows pgx.Rows) error {
		if rows.Next() {
			return rows.Scan(&active, &role)
		}
		return nil
	}, t.Names.records)
	if err != nil || !active {
		return ""
	}
	return fmt.Sprintf("; row-level security applies to this role: CREATE POLICY reprise ON %s TO %s USING (true) WITH CHECK (true)",
		t.Names.records, pgx.Identifier{role}.Sanitize())
}

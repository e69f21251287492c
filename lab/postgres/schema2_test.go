package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// This file is frozen: it sends what the last release for version 2 of the schema sends,
// in the same way. A rolling deploy runs that release beside this one on one table.

// pgSchema2 names the table in the statements of that release.
func pgSchema2(c reprisepg.Config, text string) string {
	text = strings.ReplaceAll(text, "{readable}", `(r.version = 1 AND r.state IN (1, 2) AND octet_length(r.owner) = 16 AND octet_length(r.fingerprint) = 32
	AND (r.state = 2) = (r.payload IS NOT NULL))`)
	for _, suffix := range []string{"_claim_v1", "_complete_v1", "_attempt_v1", "_open_v1", "_keep_v2"} {
		name := pgx.Identifier{c.Schema, reprisepg.DefaultTable + suffix}.Sanitize()
		text = strings.ReplaceAll(text, "{"+strings.Trim(suffix[:len(suffix)-3], "_")+"}", name)
	}
	return strings.ReplaceAll(text, "{records}", pgx.Identifier{c.Schema, reprisepg.DefaultTable}.Sanitize())
}

// pgSchema2Result is what that release makes of the words of the functions.
func pgSchema2Result(word string, attempt int, fence, left int64, payload []byte) (reprise.ClaimResult, error) {
	remaining := time.Duration(left) * time.Microsecond
	switch word {
	case "claimed", "own lapsed":
		return reprise.ClaimResult{Outcome: reprise.Claimed, Attempt: attempt, Fence: uint64(fence), Remaining: remaining}, nil
	case "in progress":
		return reprise.ClaimResult{Outcome: reprise.InProgress, Remaining: remaining}, nil
	case "completed":
		return reprise.ClaimResult{Outcome: reprise.Completed, Payload: payload}, nil
	case "mismatch":
		return reprise.ClaimResult{Outcome: reprise.Mismatch}, nil
	case "lapsed":
		return reprise.ClaimResult{Outcome: reprise.Lapsed}, nil
	}
	return reprise.ClaimResult{}, fmt.Errorf("the function answers %q", word)
}

// pgSchema2Leased is the leased store of that release.
type pgSchema2Leased struct {
	pool   *pgxpool.Pool
	config reprisepg.Config
}

func (s *pgSchema2Leased) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	for range 8 {
		var (
			word        string
			attempt     int
			fence, left int64
			payload     []byte
		)
		err := s.pool.QueryRow(ctx, pgSchema2(s.config, `SELECT verdict, attempt, fence, lease_left, payload
FROM {claim}($1::bytea, $2::bytea, $3::bytea, $4::boolean, $5::integer, $6::bigint, $7::bigint)`),
			pgx.QueryExecModeExec, r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts,
			r.Lease.Microseconds(), r.Retention.Microseconds()).Scan(&word, &attempt, &fence, &left, &payload)
		if err != nil {
			return reprise.ClaimResult{}, err
		}
		if word != "lost race" {
			return pgSchema2Result(word, attempt, fence, left, payload)
		}
	}
	return reprise.ClaimResult{}, errors.New("a concurrent statement changed the record each time")
}

func (s *pgSchema2Leased) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	var done bool
	err := s.pool.QueryRow(ctx, pgSchema2(s.config, `SELECT {complete}($1::bytea, $2::bytea, $3::bytea, $4::bigint)`),
		pgx.QueryExecModeExec, r.ID[:], r.Owner[:], r.Payload, r.Retention.Microseconds()).Scan(&done)
	if err == nil && !done {
		return reprise.ErrLeaseLost
	}
	return err
}

func (s *pgSchema2Leased) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	_, err := s.pool.Exec(ctx, pgSchema2(s.config, `WITH seen AS MATERIALIZED (
	SELECT {readable} AS readable FROM {records} AS r WHERE id = $1::bytea
), released AS (
	DELETE FROM {records} AS r
	WHERE r.id = $1::bytea AND r.owner = $2::bytea AND {readable} AND state = 1
)
SELECT readable FROM seen`), pgx.QueryExecModeExec, id[:], owner[:])
	return err
}

func (s *pgSchema2Leased) Renew(ctx context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	ids, owners, leases := make([][]byte, len(rs)), make([][]byte, len(rs)), make([]int64, len(rs))
	for i := range rs {
		ids[i], owners[i], leases[i] = rs[i].ID[:], rs[i].Owner[:], rs[i].Lease.Microseconds()
	}
	rows, err := s.pool.Query(ctx, pgSchema2(s.config, `WITH asked AS MATERIALIZED (
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS a (asked_id, asked_owner, lease, n)
), held AS MATERIALIZED (
	SELECT r.id, a.lease
	FROM asked AS a JOIN {records} AS r ON r.id = a.asked_id AND r.owner = a.asked_owner
	WHERE {readable} AND r.state = 1
		AND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())
	FOR NO KEY UPDATE OF r SKIP LOCKED
), renewed AS (
	UPDATE {records} AS r
	SET lease_until = clock_timestamp() + h.lease * interval '1 microsecond'
	FROM held AS h WHERE r.id = h.id
	RETURNING r.id, r.owner
)
SELECT CASE
	WHEN renewed.id IS NOT NULL THEN 'renewed'
	WHEN r.state = 2 AND r.valid_until > now() THEN 'completed'
	WHEN r.state = 1 AND (r.valid_until > now() OR r.lease_until > now()) THEN 'busy'
	ELSE 'lost'
END
FROM asked AS a
LEFT JOIN renewed ON renewed.id = a.asked_id AND renewed.owner = a.asked_owner
LEFT JOIN (SELECT * FROM {records} AS r WHERE {readable}) AS r ON r.id = a.asked_id AND r.owner = a.asked_owner
ORDER BY a.n`), pgx.QueryExecModeExec, ids, owners, leases)
	if err != nil {
		return nil, err
	}
	words, err := pgx.CollectRows(rows, pgx.RowTo[string])
	statuses := make([]reprise.RenewStatus, len(words))
	for i, word := range words {
		statuses[i] = map[string]reprise.RenewStatus{
			"renewed": reprise.Renewed, "busy": reprise.RenewBusy, "completed": reprise.RenewCompleted, "lost": reprise.RenewLost,
		}[word]
	}
	return statuses, err
}

// pgSchema2Tx is the transactional store of that release.
type pgSchema2Tx struct {
	pool   *pgxpool.Pool
	config reprisepg.Config

	mu       sync.Mutex
	attempts map[reprise.Owner]*pgSchema2Attempt
}

type pgSchema2Attempt struct {
	conn            *pgxpool.Conn
	fingerprint     reprise.Fingerprint
	number          int
	fence, replaced int64
}

func (s *pgSchema2Tx) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return reprise.ClaimResult{}, err
	}
	var (
		a           = &pgSchema2Attempt{conn: conn, fingerprint: r.Fingerprint}
		locked      bool
		word        string
		left        int64
		payload     []byte
		batch       pgx.Batch
		sum         = sha256.Sum256(append([]byte(s.config.Schema+"."+reprisepg.DefaultTable+"\x00"), r.ID[:]...))
		lock        = int64(binary.BigEndian.Uint64(sum[:8]))
		granted     = false
		longest     = time.Minute
		notRolledUp = func() {
			if !granted {
				_, _ = conn.Exec(ctx, "ROLLBACK")
				conn.Release()
			}
		}
	)
	defer notRolledUp()
	batch.Queue("BEGIN ISOLATION LEVEL read committed READ WRITE")
	batch.Queue(pgSchema2(s.config, "SELECT {open}($1::bigint, $2::bigint, $3::bytea)"), lock, longest.Milliseconds(), r.Owner[:]).
		QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
	batch.Queue(pgSchema2(s.config, `SELECT verdict, attempt, fence, lease_left, payload, replaced
FROM {attempt}($1::bytea, $2::bytea, $3::bytea, $4::boolean, $5::integer)`), r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts).
		QueryRow(func(row pgx.Row) error {
			return row.Scan(&word, &a.number, &a.fence, &left, &payload, &a.replaced)
		})
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return reprise.ClaimResult{}, err
	}
	switch {
	case word != "new" && word != "takeover":
		return pgSchema2Result(word, a.number, a.fence, left, payload)
	case !locked:
		return reprise.ClaimResult{Outcome: reprise.InProgress}, nil
	}
	granted = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[r.Owner] = a
	return reprise.ClaimResult{Outcome: reprise.Claimed, Atomic: true, Attempt: a.number, Fence: uint64(a.fence), Remaining: longest}, nil
}

func (s *pgSchema2Tx) take(owner reprise.Owner) *pgSchema2Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[owner]
	delete(s.attempts, owner)
	return a
}

func (s *pgSchema2Tx) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	a := s.take(r.Owner)
	defer a.conn.Release()
	var batch pgx.Batch
	batch.Queue(pgSchema2(s.config, "SELECT {keep}($1::bytea, $2::bytea, $3::bytea, $4::integer, $5::bigint, $6::bytea, $7::bigint, $8::bigint)"),
		r.ID[:], r.Owner[:], a.fingerprint[:], a.number, a.fence, r.Payload, r.Retention.Microseconds(), a.replaced)
	batch.Queue("COMMIT")
	return a.conn.SendBatch(ctx, &batch).Close()
}

func (s *pgSchema2Tx) Release(ctx context.Context, _ reprise.ID, owner reprise.Owner) error {
	a := s.take(owner)
	defer a.conn.Release()
	_, err := a.conn.Exec(ctx, "ROLLBACK")
	return err
}

func (s *pgSchema2Tx) Renew(context.Context, []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	return nil, nil
}

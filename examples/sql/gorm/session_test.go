package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"gorm.io/gorm"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/sql/internal/bank"
	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main{M: m}.Run()) }

var errRefused = errors.New("refused")

// fixture is a bank whose handlers use GORM.
type fixture struct {
	engine *reprise.Engine
	pool   *sql.DB
	shared *gorm.DB
}

func setup(tb testing.TB, prepare bool) *fixture {
	tb.Helper()
	pool, err := sql.Open("pgx", servers.StartPostgres(tb, "fsync=on").URL())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = pool.Close() })
	st, err := bank.Open(tb.Context(), pool)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fixture{pool: pool}
	if f.shared, err = open(pool, prepare); err != nil {
		tb.Fatal(err)
	}
	if f.engine, err = reprise.New(st, reprise.Config{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.engine.Close(context.WithoutCancel(tb.Context())) })
	return f
}

// do runs an attempt of key whose handler has a session.
func (f *fixture) do(tb testing.TB, key string, handler func(db *gorm.DB) error) error {
	tb.Helper()
	op := reprise.Operation{Scope: "sessions", Key: key, Fingerprint: store.Fingerprint{1}}
	_, err := reprise.Do(tb.Context(), f.engine, op, nil, func(ctx context.Context) (string, error) {
		db, err := session(ctx, f.shared)
		if err != nil {
			tb.Error(err)
			return "", err
		}
		return "", handler(db)
	})
	return err
}

// rows counts the transfers with a note, through no transaction.
func (f *fixture) rows(tb testing.TB, note string) (n int) {
	tb.Helper()
	err := f.pool.QueryRowContext(tb.Context(), "SELECT count(*) FROM reprise_example.transfers WHERE note = $1", note).Scan(&n)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func (f *fixture) want(tb testing.TB, note string, want int) {
	tb.Helper()
	if n := f.rows(tb, note); n != want {
		tb.Errorf("%d rows %q, want %d", n, note, want)
	}
}

func noted(note string) *transfer {
	return &transfer{Source: "alice", Target: "bob", Amount: 1, Note: note}
}

// The writes of a session commit and roll back with the attempt. The handle that it came
// from writes through the pool as before, at the same time and afterwards; so do those
// with statements that GORM prepares.
func TestSessionChangesNothingButItsOwnPool(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]bool{"unprepared": false, "PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, prepare)
			for call, c := range []struct {
				result error // of the handler
				rows   int   // afterwards
			}{{errRefused, 0}, {nil, 1}, {nil, 1}} {
				err := f.do(t, "key", func(db *gorm.DB) error {
					if err := db.Create(noted("session")).Error; err != nil {
						t.Error(err)
					}
					beside := make(chan error)
					go func() { beside <- f.shared.WithContext(t.Context()).Create(noted("beside")).Error }()
					if err := db.Create(noted("session too")).Error; err != nil {
						t.Error(err)
					}
					if err := <-beside; err != nil {
						t.Error(err)
					}
					f.want(t, "beside", call+1) // outside of any transaction
					f.want(t, "session", 0)
					return c.result
				})
				if !errors.Is(err, c.result) {
					t.Fatalf("call %d: %v", call, err)
				}
				f.want(t, "session", c.rows)
				f.want(t, "session too", c.rows)
				if err := f.shared.Create(noted("afterwards")).Error; err != nil {
					t.Error(err)
				}
				f.want(t, "afterwards", call+1)
			}
			f.want(t, "beside", 2) // the third call was a replay
		})
	}
}

// A nested transaction of GORM is a savepoint of the attempt's.
func TestSessionNestsTransactionsInTheAttempt(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]bool{"unprepared": false, "PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, prepare)
			for _, result := range []error{errRefused, nil} {
				err := f.do(t, "key", func(db *gorm.DB) error {
					for note, nested := range map[string]error{"kept": nil, "undone": errRefused} {
						err := db.Transaction(func(tx *gorm.DB) error {
							return errors.Join(tx.Create(noted(note)).Error, nested)
						})
						if !errors.Is(err, nested) || (err == nil) != (nested == nil) {
							t.Errorf("%s: %v", note, err)
						}
					}
					f.want(t, "kept", 0)
					return result
				})
				if !errors.Is(err, result) {
					t.Fatal(err)
				}
				f.want(t, "undone", 0)
				f.want(t, "kept", map[bool]int{true: 1}[result == nil])
			}
		})
	}
}

// The page shows the function that the tests run.
func TestThePageShowsThisSession(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/guides/transactional.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(program), "// session returns")
	text, _, found := strings.Cut(text, "\n}\n")
	if !found || !strings.Contains(string(page), text+"\n}\n") {
		t.Errorf("docs/guides/transactional.md does not have:%s", text)
	}
}

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/reprise-go/reprise/servers"
)

// perSession runs a test with GORM's prepared statements and without.
func perSession(t *testing.T, test func(t *testing.T, f *fixture, shared *gorm.DB)) {
	t.Helper()
	for name, prepare := range map[string]bool{"unprepared": false, "PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			shared, err := openGorm(f.pool, prepare)
			servers.Must(t, err)
			test(t, f, shared)
		})
	}
}

// inSession runs an attempt whose handler has a session.
func (f *fixture) inSession(t *testing.T, shared *gorm.DB, handler func(db *gorm.DB) error) error {
	t.Helper()
	_, err := f.do(t, "key", func(ctx context.Context) error {
		db, err := session(ctx, shared)
		if err != nil {
			t.Error(err)
			return err
		}
		return handler(db)
	})
	return err
}

func noted(note string) *transfer {
	return &transfer{Source: "alice", Target: "bob", Amount: 1, Note: note}
}

// The writes of a session commit and roll back with the attempt. The handle that it came
// from writes through the pool as before, at the same time and afterwards; so do those
// with statements that GORM prepares.
func TestSessionChangesNothingButItsOwnPool(t *testing.T) {
	t.Parallel()
	perSession(t, func(t *testing.T, f *fixture, shared *gorm.DB) {
		for call, c := range []struct {
			result error // of the handler
			rows   int   // afterwards
		}{{errRefused, 0}, {nil, 1}, {nil, 1}} {
			err := f.inSession(t, shared, func(db *gorm.DB) error {
				if err := db.Create(noted("session")).Error; err != nil {
					t.Error(err)
				}
				beside := make(chan error)
				go func() { beside <- shared.WithContext(t.Context()).Create(noted("beside")).Error }()
				if err := errors.Join(db.Create(noted("session too")).Error, <-beside); err != nil {
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
			if err := shared.Create(noted("afterwards")).Error; err != nil {
				t.Error(err)
			}
			f.want(t, "afterwards", call+1)
		}
		f.want(t, "beside", 2) // the third call was a replay
	})
}

// A nested transaction of GORM is a savepoint of the attempt's.
func TestSessionNestsTransactionsInTheAttempt(t *testing.T) {
	t.Parallel()
	perSession(t, func(t *testing.T, f *fixture, shared *gorm.DB) {
		for _, result := range []error{errRefused, nil} {
			err := f.inSession(t, shared, func(db *gorm.DB) error {
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

// The page shows the function that the tests run.
func TestThePageShowsThisSession(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("gorm.go")
	servers.Must(t, err)
	page, err := os.ReadFile("../../docs/guides/transactional.md")
	servers.Must(t, err)
	_, text, _ := strings.Cut(string(program), "// session returns")
	text, _, found := strings.Cut(text, "\n}\n")
	if !found || !strings.Contains(string(page), text+"\n}\n") {
		t.Errorf("docs/guides/transactional.md does not have:%s", text)
	}
}

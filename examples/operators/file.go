package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	"github.com/reprise-go/reprise/core/store"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// fileRecords are records in a file of SQLite, which the processes of the demonstration
// share.
type fileRecords struct {
	*reprisesqlite.Store

	db        *sql.DB
	file      string
	temporary string // the folder of the file, if Close deletes it
}

// openFile opens the records in a file. If file is empty, it creates one in a temporary
// folder, which Close deletes.
func openFile(ctx context.Context, file string) (*fileRecords, error) {
	r := &fileRecords{file: file}
	if file == "" {
		dir, err := os.MkdirTemp("", "operators")
		if err != nil {
			return nil, err
		}
		r.file, r.temporary = filepath.Join(dir, "records.db"), dir
	}
	err := r.open(ctx)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *fileRecords) open(ctx context.Context) (err error) {
	r.db, err = sql.Open("sqlite", "file:"+filepath.ToSlash(r.file)+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	if err := reprisesqlite.Migrate(ctx, r.db, reprisesqlite.Config{}); err != nil {
		return err
	}
	r.Store, err = reprisesqlite.Open(ctx, r.db, reprisesqlite.Config{})
	return err
}

func (r *fileRecords) flags() []string { return []string{"-sqlite-file", r.file} }

// spoil makes a record look like one of another release, which this one cannot read.
func (r *fileRecords) spoil(ctx context.Context, id store.ID) error {
	_, err := r.db.ExecContext(ctx, "UPDATE reprise_records SET version = 100 WHERE id = ?", id[:])
	return err
}

func (r *fileRecords) Close() error {
	var err error
	if r.db != nil {
		err = r.db.Close()
	}
	if r.temporary != "" {
		err = errors.Join(err, os.RemoveAll(r.temporary))
	}
	return err
}

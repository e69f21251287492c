package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/reprise-go/reprise/core/store"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// openFile opens the records in a file of SQLite, which it creates if it is missing.
func openFile(ctx context.Context, file string) (store.Store, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, fmt.Errorf("-sqlite-file: %w", err)
	}
	if err := reprisesqlite.Migrate(ctx, db, reprisesqlite.Config{}); err != nil {
		return nil, fmt.Errorf("-sqlite-file: %w", err)
	}
	return reprisesqlite.Open(ctx, db, reprisesqlite.Config{})
}

// death orders from a process that keeps its records in a file, kills it, and sends the
// retry to the process that comes after it.
func (d *demo) death(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var first reply
	for life := range 2 {
		r, err := d.orderFromProcess(ctx, filepath.Join(dir, "records.db"))
		if err != nil {
			return err
		}
		d.exchange(d.key("death"), oneBook, r)
		if life == 0 {
			first = r
			d.say("     (the process is killed with SIGKILL, and another one starts)")
			continue
		}
		return d.check("the process that had taken the order is dead, and its response came from the file",
			first.status == http.StatusCreated && !first.replayed() && r.replayed() && r.body == first.body)
	}
	return nil
}

// orderFromProcess starts this program as a process that serves, orders from it, and
// kills it.
func (d *demo) orderFromProcess(ctx context.Context, file string) (reply, error) {
	self, err := os.Executable()
	if err != nil {
		return reply{}, err
	}
	process := exec.CommandContext(ctx, self, "-sqlite-file", file, "-addr", "127.0.0.1:0") //nolint:gosec // this program
	var said strings.Builder
	process.Stderr = &said
	printed, err := process.StdoutPipe()
	if err != nil {
		return reply{}, err
	}
	if err := process.Start(); err != nil {
		return reply{}, err
	}
	defer process.Wait() //nolint:errcheck // it was killed
	line, err := bufio.NewReader(printed).ReadString('\n')
	url := regexp.MustCompile(`http://[0-9.:]+[0-9]`).FindString(line)
	if err != nil || url == "" {
		return reply{}, errors.Join(fmt.Errorf("the other process does not serve: %s %w", said.String(), err), process.Process.Kill())
	}
	other := &demo{transcript: d.transcript, url: url}
	r, err := other.post(ctx, d.key("death"), oneBook)
	return r, errors.Join(err, process.Process.Kill())
}

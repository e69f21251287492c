// Quickstart is an orders API whose requests are safe to retry, with the console of its
// operators. The records are in a file of SQLite, which outlives a process.
//
//	go run ./examples/quickstart          # serve both, with a stuck order to resolve
//	go run ./examples/quickstart -demo    # show what clients and operators see, and check it
//
//run:background until 8080
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	_ "modernc.org/sqlite" // the driver

	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	demo := flag.Bool("demo", false, "show what clients and operators see, check it, and exit")
	browse := flag.Bool("open", false, "open the console in the browser")
	file := flag.String("dying", "", "be the process that is killed while it takes an order; its records are in this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *file, *addr, *demo, *browse)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, file, addr string, demo, browse bool) error {
	dying := file != ""
	if !dying {
		dir, err := os.MkdirTemp("", "quickstart")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file = filepath.Join(dir, "records.db")
	}
	records, closeFile, err := openFile(ctx, file)
	if err != nil {
		return err
	}
	defer closeFile()
	s, err := newShop(ctx, out, addr, file, records)
	if err != nil {
		return err
	}
	switch {
	case dying:
		s.dying = true
		fmt.Fprintln(out, s.url)
		<-ctx.Done()
	case demo:
		err = (&transcript{s, out}).steps(ctx)
	default:
		err = s.show(ctx, out, browse)
	}
	return errors.Join(err, s.close(ctx))
}

// openFile opens the records in a file of SQLite, which it creates if it is missing.
func openFile(ctx context.Context, file string) (*reprisesqlite.Store, func(), error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, nil, err
	}
	closeDB := func() { _ = db.Close() }
	if err := reprisesqlite.Migrate(ctx, db, reprisesqlite.Config{}); err != nil {
		return nil, closeDB, err
	}
	records, err := reprisesqlite.Open(ctx, db, reprisesqlite.Config{})
	return records, closeDB, err
}

// show leaves a stuck order behind, and serves until ctx ends.
func (s *shop) show(ctx context.Context, out io.Writer, browse bool) error {
	for range 2 {
		if _, err := s.order(ctx, "order-done", book); err != nil {
			return err
		}
	}
	if err := s.crash(ctx, "order-stuck"); err != nil {
		return err
	}
	fmt.Fprintf(out, `The console: %[1]s/idempotency/

One order is stuck: %[2]s. A process was killed while it took it.
Its client gets 409 outcome-unknown. Try it, resolve the order in the console, and try again:

  curl -i %[1]s/orders -H 'Idempotency-Key: order-stuck' -H 'Content-Type: application/json' -d '%[3]s'

Ctrl-C ends everything.
`, s.url, idOf("order-stuck").Short(), book)
	if browse {
		go openBrowser(out, s.url+"/idempotency/")
	}
	<-ctx.Done()
	return nil
}

// openBrowser shows an address in the browser, or says why it could not.
func openBrowser(out io.Writer, address string) {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	process := exec.Command(opener, address) //nolint:gosec,noctx // an address of our own; a browser may outlive this program
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	if err := process.Run(); err != nil {
		fmt.Fprintf(out, "\nNo browser was opened (%v). The console: %s\n", err, address)
	}
}

// listen listens on addr, or on the next free port if that of addr is taken.
func listen(ctx context.Context, out io.Writer, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	wanted, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil {
		return nil, fmt.Errorf("the address %q is invalid: want host:port, such as 127.0.0.1:8080", addr)
	}
	for next := wanted; ; next++ {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.FormatUint(next, 10)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err == nil && next != wanted {
			fmt.Fprintf(out, "Port %d is taken: %d, the next free one, is used instead.\n", wanted, next)
		}
		return ln, err
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// executable returns the path of this program.
var executable = os.Executable

// crashProcess starts this program as another process with the same records, which flags
// name, calls during with its URL, and kills it.
func crashProcess(ctx context.Context, during func(url string) error, flags ...string) error {
	self, err := executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, self, append(flags, "-dying")...) //nolint:gosec // this program
	process.Stderr = os.Stderr
	printed, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	url, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		err = fmt.Errorf("the other process ended early: %w", err)
	} else {
		err = during(strings.TrimSpace(url))
	}
	killed := process.Process.Kill()
	_ = process.Wait() // it was killed
	return errors.Join(err, killed)
}

// serveUntilKilled is the other process: it prints its URL, and never ends a slow order.
func serveUntilKilled(ctx context.Context, out io.Writer, store store.Store) error {
	a, err := serveShop(ctx, out, anyPort, store)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, a.url)
	<-ctx.Done()
	return a.close(ctx)
}

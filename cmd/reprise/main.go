// Program reprise shows an operator the idempotency records of a store, which operations
// need a person, and the effect of a decision about one of them. README.md beside this
// file describes the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/reprise-go/reprise/cmd/reprise/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	code := command.Run(ctx, os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv})
	stop()
	os.Exit(code)
}

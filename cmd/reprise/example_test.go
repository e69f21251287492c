package main

import (
	"context"
	"os"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/command"
)

// An ID is derived from a client's key without a store.
func Example() {
	command.Run(context.Background(), []string{"find", "--scope", "tenant-17", "--key", "-", "--id-only"}, command.Streams{
		In: strings.NewReader("7c1f\n"), Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
	})
	// Output: 2dde4d8c25db3c2273c261fca7e2707ef4e421cee59a3ecc24c75f0c7dd7f81a
}

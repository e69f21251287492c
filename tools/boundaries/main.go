// Command boundaries proves the import rules of the project on every run: which package
// may import which, which requirements a published go.mod may list, and that nobody who
// takes one adapter gets another framework. The table of rules is in rules.go.
//
// It prints one line for each violation and exits with 1 if there is one, with 2 if it
// could not look.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	dir := flag.String("root", ".", "the folder of go.work")
	flag.Parse()
	os.Exit(run(context.Background(), *dir))
}

func run(ctx context.Context, dir string) int {
	served, modules, pkgs, err := load(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "boundaries:", err)
		return 2
	}
	rooms, err := loadPicture(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "boundaries:", err)
		return 2
	}
	bad := append(check(modules, pkgs), checkPicture(rooms, pkgs)...)
	for _, line := range bad {
		fmt.Fprintln(os.Stderr, line)
	}
	if !served.Served() {
		fmt.Fprintln(os.Stderr, "boundaries: looked at source alone where", served.Summary())
	}
	fmt.Fprintf(os.Stderr, "boundaries: %d packages in %d modules, %d violations\n", len(pkgs), len(modules), len(bad))
	if len(bad) > 0 {
		return 1
	}
	return 0
}

// Peers measures other libraries beside Reprise, in the way of lab/bench: the idempotency
// middlewares of Fiber v2 (target P6) and v3, and two packages of npm on Express. It is
// outside the workspace and part of no other check, so that its requirements affect no
// other module.
//
//	make bench/peers BENCHFLAGS="-suites fiber -rounds 12"
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/reprise-go/reprise/lab/bench/suites"
)

func main() { suites.Main(`make bench/peers BENCHFLAGS="%s"`, fiber(), fiber3(), node()) }

// fiber compares with the middleware that Fiber v2 brings along, and fiber3 with that of
// v3.
func fiber() suites.Comparison { return beside("fiber", "fiber", "fiberv2/own", "Fiber v2") }

func fiber3() suites.Comparison { return beside("fiber3", "fiber3", "fiberv3/own", "Fiber v3") }

// beside compares the middleware of a release of Fiber, which program serves, with ours
// and with the framework alone, whose name is bare.
func beside(suite, framework, program, bare string) suites.Comparison {
	alone := suites.Bare(framework)
	alone.Name = bare
	variants := []suites.Variant{alone}
	for _, store := range []string{"memory", "redis"} {
		ours := suites.Reprise(framework, store)
		theirs := ours.Over(bare)
		theirs.Name, theirs.Program, theirs.Build, theirs.Marked = "Fiber's own+"+store, program, suites.BuildPeer(program), false
		ours.Name = "Reprise+" + store
		variants = append(variants, theirs, ours.Over(theirs.Name, bare))
	}
	return suites.Comparison{Name: suite, Connections: []int{64}, Kinds: suites.BothKinds, Variants: variants}
}

// node compares the cost of two packages of npm and of Reprise over their frameworks.
func node() suites.Comparison {
	on := func(name, args, store string) suites.Variant {
		return suites.Variant{Name: name, Program: "node", Build: buildNode, Args: args, Store: store, Bases: []string{"Express"}}
	}
	express := on("Express", "bare", "")
	express.Bases = nil
	return suites.Comparison{
		Name: "node", Node: true, Connections: []int{64}, Kinds: suites.BothKinds,
		Variants: []suites.Variant{
			express,
			on("@node-idempotency/core+memory", "node-idempotency-memory", ""),
			on("@node-idempotency/core+redis", "node-idempotency-redis {redis}", "redis"),
			on("express-idempotency+memory", "express-idempotency", ""),
			suites.Bare("nethttp").Over("Express"),
			suites.Reprise("nethttp", "memory").Over("nethttp", "@node-idempotency/core+memory"),
			suites.Reprise("nethttp", "redis").Over("nethttp", "@node-idempotency/core+redis"),
		},
	}
}

// buildNode installs the packages beside a copy of the program, so that the tree stays as
// it is.
func buildNode(ctx context.Context, root, path string) ([]string, error) {
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			return nil, fmt.Errorf("%s is not installed", needed)
		}
	}
	if err := os.CopyFS(path, os.DirFS(filepath.Join(root, "tools", "peers", "node"))); err != nil {
		return nil, err
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = path
	return []string{"node", filepath.Join(path, "server.js")}, suites.Run(install)
}

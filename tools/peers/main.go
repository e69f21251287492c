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
func fiber() suites.Comparison {
	return beside("fiber", "fiberv2", "Fiber v2", suites.Variant{Name: "floor+memory", Args: "-variant floor-memory"})
}

func fiber3() suites.Comparison { return beside("fiber3", "fiberv3", "Fiber v3") }

// beside compares the program of a release of Fiber, whose name is bare, with its own
// middleware and with ours. The floors do less than ours in memory.
func beside(suite, program, bare string, floors ...suites.Variant) suites.Comparison {
	const inMemory, inRedis = "Fiber's own+memory", "Fiber's own+redis"
	of := func(v suites.Variant) suites.Variant {
		v.Program, v.Build = program, suites.BuildPeer(program)
		return v
	}
	named := func(name, kind string) suites.Variant {
		return of(suites.Variant{Name: name, Args: "-variant " + kind})
	}
	withRedis := func(name, kind string) suites.Variant {
		v := named(name, kind+" -redis {redis}")
		v.Store = "redis"
		return v
	}
	ours := func(v suites.Variant) suites.Variant {
		v.Marked = true
		return v
	}
	c := suites.Comparison{Name: suite, Connections: []int{64}, Kinds: suites.BothKinds, Variants: []suites.Variant{named(bare, "bare")}}
	for _, floor := range floors {
		c.Variants = append(c.Variants, of(floor).Over(inMemory, bare))
	}
	c.Variants = append(
		c.Variants,
		named(inMemory, "own-memory").Over(bare),
		ours(named("Reprise+memory", "reprise-memory")).Over(inMemory, bare),
		withRedis(inRedis, "own-redis").Over(bare),
		ours(withRedis("Reprise+redis", "reprise-redis")).Over(inRedis, bare),
		ours(withRedis("Reprise+redis, one by one", "alone-redis")).Over(inRedis, bare),
	)
	return c
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

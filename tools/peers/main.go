// Peers measures other libraries beside Reprise, in the way of lab/bench: Fiber's own
// idempotency middleware (target P6), and two packages of npm on Express. It is outside
// the workspace and part of no other check, so that its requirements affect no other
// module. So lab/bench takes the program autopipeline from here.
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

func main() { suites.Main(`make bench/peers BENCHFLAGS="%s"`, fiber(), node()) }

// fiber compares with the middleware that Fiber brings along.
func fiber() suites.Comparison {
	const inMemory, inRedis = "Fiber's own+memory", "Fiber's own+redis"
	v2 := func(name, kind string) suites.Variant {
		return suites.Variant{Name: name, Program: "fiberv2", Build: suites.BuildPeer("fiberv2"), Args: "-variant " + kind}
	}
	withRedis := func(name, kind string) suites.Variant {
		v := v2(name, kind+" -redis {redis}")
		v.Store = "redis"
		return v
	}
	ours := func(v suites.Variant) suites.Variant {
		v.Marked = true
		return v
	}
	return suites.Comparison{
		Name: "fiber", Connections: []int{64}, Kinds: suites.BothKinds,
		Variants: []suites.Variant{
			v2("Fiber v2", "bare"),
			v2("floor+memory", "floor-memory").Over(inMemory, "Fiber v2"),
			v2(inMemory, "own-memory").Over("Fiber v2"),
			ours(v2("Reprise+memory", "reprise-memory")).Over(inMemory, "Fiber v2"),
			withRedis(inRedis, "own-redis").Over("Fiber v2"),
			ours(withRedis("Reprise+redis", "reprise-redis")).Over(inRedis, "Fiber v2"),
			ours(withRedis("Reprise+redis, one by one", "alone-redis")).Over(inRedis, "Fiber v2"),
		},
	}
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

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
	"strings"

	"github.com/reprise-go/reprise/lab/bench/suites"
)

func main() { suites.Main(`make bench/peers BENCHFLAGS="%s"`, fiber(), fiber3(), node()) }

// fiber compares with the middleware that Fiber v2 brings along, and fiber3 with that of
// v3.
func fiber() suites.Comparison { return beside("fiber", "fiberv2", "Fiber v2") }

func fiber3() suites.Comparison { return beside("fiber3", "fiberv3", "Fiber v3") }

// beside compares the program of a release of Fiber, whose name is bare, with its own
// middleware and with ours.
func beside(suite, program, bare string) suites.Comparison {
	const inMemory, inRedis = "Fiber's own+memory", "Fiber's own+redis"
	variant := func(name, args string, marked bool, bases ...string) suites.Variant {
		v := suites.Variant{Name: name, Program: program, Build: suites.BuildPeer(program), Args: "-variant " + args, Marked: marked, Bases: bases}
		if strings.Contains(args, "{redis}") {
			v.Store = "redis"
		}
		return v
	}
	return suites.Comparison{Name: suite, Connections: []int{64}, Kinds: suites.BothKinds, Variants: []suites.Variant{
		variant(bare, "bare", false),
		variant(inMemory, "own-memory", false, bare),
		variant("Reprise+memory", "reprise-memory", true, inMemory, bare),
		variant(inRedis, "own-redis -redis {redis}", false, bare),
		variant("Reprise+redis", "reprise-redis -redis {redis}", true, inRedis, bare),
	}}
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

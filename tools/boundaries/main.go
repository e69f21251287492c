// Command boundaries proves the rules about modules that no linter sees, on every run:
// packages that published code links through others, the versions and frameworks in every
// go.mod, and the picture of CONTRIBUTING.md. Which package may import which is
// depguard's part, in .golangci.yml; which modules a consumer gets is proven by "make
// release/dry".
//
//	boundaries -root .. adapters/gin core
//
// The arguments are the modules whose packages are loaded, by their folders, in the
// workspace that GOWORK names. It prints one line for each violation and exits with 1 if
// there is one, with 2 if it could not look.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// root is the path that every module of the project starts with.
const root = "github.com/reprise-go/reprise/"

func main() {
	dir := flag.String("root", ".", "the folder of go.work")
	work := flag.String("work", "go.work", "the workspace to load packages in")
	flag.Parse()
	bad, err := check(context.Background(), *dir, *work, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "boundaries:", err)
		os.Exit(2)
	}
	for _, line := range bad {
		fmt.Fprintln(os.Stderr, line)
	}
	fmt.Fprintf(os.Stderr, "boundaries: %d violations in %d modules\n", len(bad), flag.NArg())
	if len(bad) > 0 {
		os.Exit(1)
	}
}

// check returns the violations, one sentence each, sorted and without repetition.
func check(ctx context.Context, dir, work string, folders []string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		return nil, errors.New("no modules are named")
	}
	modules, bad, err := loadModules(ctx, dir)
	if err != nil {
		return nil, err
	}
	pkgs, err := loadPackages(ctx, dir, work, folders)
	if err != nil {
		return nil, err
	}
	page, err := os.ReadFile(filepath.Join(dir, pictureFile))
	if err != nil {
		return nil, err
	}
	p, err := readPicture(string(page))
	if err != nil {
		return nil, err
	}
	bad = slices.Concat(bad, checkModules(modules), checkLinks(pkgs), checkPicture(p, pkgs))
	slices.Sort(bad)
	return slices.Compact(bad), nil
}

// published reports whether users can import the packages of a folder.
func published(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return top != "lab" && top != "examples" && top != "tools"
}

// within reports whether path is tree or below it.
func within(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

// runGo runs the go command in dir with the given GOWORK and returns its output.
func runGo(ctx context.Context, dir, gowork string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+gowork)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.Bytes())
	}
	return out, nil
}

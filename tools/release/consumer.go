package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/sync/errgroup"
)

// A consumer is a machine with the go command and without the project: it gets the
// modules of the release from a proxy in a folder, and others from the module cache of
// this machine or from the usual proxy.
type consumer struct {
	home string
	env  []string
}

// newConsumer returns a consumer whose module cache is in its home, so that a version
// that was never released does not get into the cache of this machine.
func newConsumer(ctx context.Context, home string, releases *proxy) (*consumer, error) {
	u := &consumer{home: home}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	out, err := u.run(ctx, home, "env", "-json", "GOPROXY", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	var outer struct{ GOPROXY, GOMODCACHE string }
	if err := json.Unmarshal([]byte(out), &outer); err != nil {
		return nil, err
	}
	u.env = []string{
		"GOWORK=off", "GOMODCACHE=" + filepath.Join(home, "modules"), "GOBIN=" + filepath.Join(home, "bin"),
		"GOPROXY=" + fileURL(releases.dir) + "," + fileURL(filepath.Join(outer.GOMODCACHE, "cache", "download")) + "," + outer.GOPROXY,
		// With a GONOPROXY, the go command looks into its cache before it asks a proxy: there
		// it finds client, and then does not look for client/grpc.
		"GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GOSUMDB=off",
		// Without -trimpath the build cache would miss every package: its folder is new.
		"GOFLAGS=-trimpath -modcacherw", "GOTOOLCHAIN=local",
	}
	return u, nil
}

func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

// run runs the go command and returns its standard output. An error that a module proxy
// caused by refusing a module of others is an unavailable.
func (u *consumer) run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(environment(), u.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), refusedOr(stderr.String(), fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes()))
	}
	return string(out), nil
}

// refused matches the go command's error for a module that no proxy serves.
var refused = regexp.MustCompile(`(\S+@v\S+): reading \S+: (.*)`)

// unavailable is the module that a proxy refuses, with its response.
type unavailable string

func (u unavailable) Error() string { return "the module proxy refuses " + string(u) }

// refusedOr returns an unavailable if the go command says that a proxy refuses a module
// of others, and else the error.
func refusedOr(said string, err error) error {
	if m := refused.FindStringSubmatch(said); len(m) > 0 && !strings.HasPrefix(m[1], prefix) {
		return unavailable(m[1] + ": " + m[2])
	}
	return err
}

// each calls do with every module, some at a time. Where a proxy refuses a module that
// one of them needs, the proof is missing and named.
func (r *release) each(ctx context.Context, missing string, do func(context.Context, module) error) error {
	return r.inParallel(ctx, len(r.modules), func(ctx context.Context, i int) (string, error) {
		return r.modules[i].folder + ": " + missing, do(ctx, r.modules[i])
	})
}

// inParallel calls do with 0 to n-1, some at a time. do returns the name of the proof
// that is missing where its error is an unavailable.
func (r *release) inParallel(ctx context.Context, n int, do func(context.Context, int) (string, error)) error {
	leftOut := make([]string, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU() + 1) // the go command waits for files and locks now and then
	for i := range n {
		group.Go(func() error {
			missing, err := do(ctx, i)
			if reason, ok := errors.AsType[unavailable](err); ok {
				leftOut[i] = missing + ": " + reason.Error()
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, line := range leftOut {
		if line != "" {
			r.leftOut = append(r.leftOut, line)
		}
	}
	return nil
}

// checkTags lets the go command itself pack every module, from its tag, and compares the
// hashes with those in the go.sum files.
func (r *release) checkTags(ctx context.Context) error {
	u, err := newConsumer(ctx, filepath.Join(r.work, "direct"), r.proxy)
	if err != nil {
		return err
	}
	config := fmt.Sprintf("[url %q]\n\tinsteadOf = https://%s\n[safe]\n\tdirectory = *\n", fileURL(r.clone.dir), strings.TrimSuffix(prefix, "/"))
	if err := os.WriteFile(filepath.Join(u.home, "gitconfig"), []byte(config), 0o600); err != nil {
		return err
	}
	u.env = append(u.env, "GOPROXY=direct", "GIT_CONFIG_GLOBAL="+filepath.Join(u.home, "gitconfig"))
	args := []string{"mod", "download", "-json"}
	for _, m := range r.modules {
		args = append(args, m.path()+"@"+r.version)
	}
	out, err := u.run(ctx, u.home, args...)
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var got struct{ Path, Version, Sum, GoModSum string }
		if err := dec.Decode(&got); err != nil {
			return err
		}
		v := gomodule.Version{Path: got.Path, Version: got.Version}
		if got.Sum != r.proxy.sums[v] || got.GoModSum != r.proxy.sums[gomodule.Version{Path: v.Path, Version: v.Version + "/go.mod"}] {
			return fmt.Errorf("the go command packs %s with the hashes %s and %s, the release has %s", v, got.Sum, got.GoModSum, r.proxy.sums[v])
		}
	}
	r.say("the go command packs the same %d zips from the tags", len(r.modules))
	return nil
}

// checkTidy refuses a module whose go.mod or go.sum the go command would change.
func (r *release) checkTidy(ctx context.Context) error {
	u, err := newConsumer(ctx, filepath.Join(r.work, "user"), r.proxy)
	if err != nil {
		return err
	}
	err = r.each(ctx, "its go.mod was not compared with go mod tidy", func(ctx context.Context, m module) error {
		diff, err := u.run(ctx, filepath.Join(r.clone.dir, filepath.FromSlash(m.folder)), "mod", "tidy", "-diff")
		if diff != "" {
			return refuse("%s/go.mod is not tidy: run make tidy/fix\n%s", m.folder, changedLines(diff, 10))
		}
		return err
	})
	if err == nil {
		r.say("go mod tidy changes no go.mod and no go.sum, without go.work and without a replacement")
	}
	return err
}

// changedLines returns the first changed lines of a diff.
func changedLines(diff string, most int) string {
	var changed []string
	for line := range strings.Lines(diff) {
		switch {
		case !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "-"):
		case len(changed) == most:
			return strings.Join(append(changed, "…"), "")
		default:
			changed = append(changed, line)
		}
	}
	return strings.Join(changed, "")
}

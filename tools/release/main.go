// Command release makes a release of every published module: one commit beside the
// branch, whose go.mod files require their siblings at the version of the release and
// replace none of them, and a tag on it for each module. The reasons are in
// docs/engineering/adr/0021-releases.md.
//
// All of it happens in a temporary clone. Before a tag is made, the program packs each
// module as a module proxy does, serves the zips from a folder, and uses them from empty
// modules elsewhere. With -dry it stops there; otherwise the tags are then copied into
// the project's repository. It does not push.
//
// It exits with 1 if the release is refused, with 2 if it could not look.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	root := flag.String("root", ".", "the folder of go.work")
	version := flag.String("version", "", "the version to release, such as v0.1.0; with -dry the default is the next one")
	dry := flag.Bool("dry", false, "keep nothing: prove that the release can be made and used")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *root, *version, *dry)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(exitCode(err))
	}
}

// A refusal says in a sentence for each reason why there is no release.
type refusal []string

func (r refusal) Error() string { return "refused: " + strings.Join(r, "\nrelease: refused: ") }

// refuse returns a refusal with one reason.
func refuse(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

func exitCode(err error) int {
	if errors.As(err, new(refusal)) {
		return 1
	}
	return 2
}

// A release is one run of the program.
type release struct {
	out     io.Writer
	began   time.Time
	dry     bool
	version string

	anyVersion bool // whether version is only the next one, which may have no entry yet

	entry string // the section of CHANGELOG.md for the version
	dirty bool   // whether the clone has files that are not committed in the project

	project *repository // the checkout
	clone   *repository // where everything is committed and tagged first
	work    string      // a temporary folder, with the clone and everything else
	tags    []string    // all tags of the project
	last    string      // the version of the last release; empty before the first
	modules []module    // the published ones, each after those that it requires
	proxy   *proxy
	leftOut []string // a line for each proof that could not be made on this machine
}

func run(ctx context.Context, out io.Writer, root, version string, dry bool) error {
	r, err := newRelease(out, root, version, dry)
	if err != nil {
		return err
	}
	return errors.Join(r.steps(ctx, r.copy, r.check, r.checkAPI, r.prepare, r.checkTags, r.checkTidy, r.use, r.finish), os.RemoveAll(r.work))
}

func newRelease(out io.Writer, root, version string, dry bool) (*release, error) {
	if version == "" && !dry {
		return nil, refuse("VERSION is missing: make release VERSION=v0.1.0")
	}
	root, err1 := filepath.Abs(root)
	work, err2 := os.MkdirTemp("", "release")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return &release{
		out: out, began: time.Now(), dry: dry, version: version, anyVersion: version == "",
		project: &repository{dir: root}, clone: &repository{dir: filepath.Join(work, "clone")}, work: work,
	}, nil
}

// steps takes steps up to the first that fails.
func (r *release) steps(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say prints a line with the time since the beginning.
func (r *release) say(format string, args ...any) {
	fmt.Fprintf(r.out, "%5.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// check refuses the tree for everything that can be seen without building it.
func (r *release) check(context.Context) error {
	var reasons refusal
	if r.dirty && !r.dry {
		reasons = append(reasons, "the tree is dirty: commit or stash the changes that git status shows")
	}
	entry, noEntry := readEntry(r.clone.dir, r.version, r.dry)
	r.entry = entry
	if missing, ok := errors.AsType[refusal](noEntry); ok && r.anyVersion {
		r.say("changelog: %s", missing[0])
		noEntry = nil
	}
	for _, err := range []error{
		checkVersion(r.version, r.last, r.tags, r.modules),
		noEntry,
		checkDocumentation(r.clone.dir, r.modules),
	} {
		if more, ok := errors.AsType[refusal](err); ok {
			reasons = append(reasons, more...)
		} else if err != nil {
			return err
		}
	}
	if len(reasons) > 0 {
		return reasons
	}
	return nil
}

// finish copies the tags into the project's repository, or says that it does not.
func (r *release) finish(ctx context.Context) error {
	for _, line := range r.leftOut {
		r.say("LEFT OUT: %s", line)
	}
	if r.dry {
		r.say("%s can be released: %d modules; this was a dry run, which keeps nothing", r.version, len(r.modules))
		return nil
	}
	if len(r.leftOut) > 0 {
		return refuse("a release leaves nothing out")
	}
	args := []string{"fetch", "--quiet", "--no-tags", r.clone.dir}
	for _, m := range r.modules {
		ref := "refs/tags/" + m.tag(r.version)
		args = append(args, ref+":"+ref)
	}
	if _, err := r.project.git(ctx, args...); err != nil {
		return err
	}
	r.say("%s is tagged: %d modules. To publish it: git push --atomic origin $(git tag --points-at core/%s^{commit})", r.version, len(r.modules), r.version)
	return nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A repository is a folder with files under git.
type repository struct {
	dir string
	env []string // in addition to that of the process
}

// git runs git in the repository and returns its output without the newline at the end.
func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	return r.gitWith(ctx, "", args...)
}

// gitWith is git with a standard input.
func (r *repository) gitWith(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = r.dir, append(environment(), r.env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w\n%s", args[0], r.dir, err, stderr.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// environment is that of the process without the variables that point git at a repository
// or the go command at a workspace.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_WORK_TREE=") || strings.HasPrefix(v, "GIT_INDEX_FILE=") || strings.HasPrefix(v, "GOWORK=")
	})
}

// copy makes the clone, with the files of the project as they are now, and reads its
// tags and modules.
func (r *release) copy(ctx context.Context) error {
	if r.dry { // its commits need no author, and a checkout of another user serves as well
		config := filepath.Join(r.work, "gitconfig")
		r.project.env = []string{"GIT_CONFIG_GLOBAL=" + config}
		r.clone.env = r.project.env
		if err := os.WriteFile(config, []byte("[user]\n\tname = dry run\n\temail = dry@example.invalid\n[safe]\n\tdirectory = *\n"), 0o600); err != nil {
			return err
		}
	}
	top, err := r.project.git(ctx, "rev-parse", "--show-toplevel")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("git is missing: install it")
	case err == nil && sameFolder(top, r.project.dir):
		_, err = r.project.git(ctx, "clone", "--quiet", "--shared", "--no-checkout", ".", r.clone.dir)
	case !r.dry:
		return refuse("%s is not the root of a git repository, so it cannot be tagged", r.project.dir)
	default: // a source archive
		_, err = r.project.git(ctx, "init", "--quiet", r.clone.dir)
	}
	if err != nil {
		return err
	}
	if err := r.steps(ctx, r.takeIdentity, r.snapshot); err != nil {
		return err
	}
	tags, err := r.clone.git(ctx, "tag", "--list")
	if err != nil {
		return err
	}
	r.tags = strings.Fields(tags)
	r.last = lastVersion(r.tags)
	if r.version == "" {
		r.version = nextVersion(r.last)
	}
	r.modules, err = loadModules(ctx, r.clone)
	if err == nil {
		r.say("%s of %d modules%s", r.version, len(r.modules), map[bool]string{true: ", with changes that are not committed"}[r.dirty])
	}
	return err
}

// takeIdentity makes the committer of the project the author of the release.
func (r *release) takeIdentity(ctx context.Context) error {
	for _, key := range []string{"user.name", "user.email"} {
		value, err := r.project.git(ctx, "config", "--get", key)
		if err != nil || value == "" {
			return refuse("git does not know who releases: git config %s", key)
		}
		if _, err := r.clone.git(ctx, "config", key, value); err != nil {
			return err
		}
	}
	return nil
}

// snapshot checks out in the clone the files of the project that git does not ignore.
func (r *release) snapshot(ctx context.Context) error {
	committed, err := r.clone.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
	parent := []string{"-p", "HEAD"}
	if err != nil { // no commit yet
		parent = nil
	} else if _, err := r.clone.git(ctx, "read-tree", "HEAD"); err != nil {
		return err
	}
	if _, err := r.clone.git(ctx, "--work-tree="+r.project.dir, "add", "--all"); err != nil {
		return err
	}
	tree, err := r.clone.git(ctx, "write-tree")
	if err != nil {
		return err
	}
	commit := "HEAD"
	if tree != committed {
		r.dirty = true
		commit, err = r.clone.git(ctx, slices.Concat([]string{"commit-tree", "-m", "Files of the project", tree}, parent)...)
		if err != nil {
			return err
		}
	}
	_, err = r.clone.git(ctx, "checkout", "--quiet", "--force", "--detach", commit)
	return err
}

func sameFolder(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

package main

import (
	"archive/zip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// proxy is a module proxy in a folder. Its version is one that no other run has, so that
// the module cache of the machine, and with it what was built before, can be used.
type proxy struct {
	dir     string
	version string
	env     []string
}

func newProxy(t *testing.T, modules []module) *proxy {
	t.Helper()
	p := &proxy{dir: t.TempDir(), version: "v0.1.0-t" + strings.ToLower(rand.Text())}
	outer := strings.Split(strings.TrimSpace(p.run(t, p.dir, "env", "GOPROXY", "GOMODCACHE")), "\n")
	p.env = []string{
		"GOPROXY=file://" + filepath.ToSlash(p.dir) + "," + outer[0],
		"GONOSUMDB=*", "GOPRIVATE=", "GONOPROXY=none",
		"GOFLAGS=-mod=mod -modcacherw -buildvcs=false", "GOWORK=off",
	}
	t.Cleanup(func() { // what this run left in the module cache
		for _, m := range modules {
			extracted := filepath.Join(outer[1], filepath.FromSlash(root+m.path)+"@"+p.version)
			downloads := filepath.Join(outer[1], "cache", "download", filepath.FromSlash(root+m.path), "@v")
			files, _ := filepath.Glob(filepath.Join(downloads, p.version+".*"))
			for _, name := range append(files, extracted, filepath.Join(downloads, "list")) {
				if err := os.RemoveAll(name); err != nil {
					t.Errorf("clean up: %v", err)
				}
			}
		}
	})
	return p
}

// run runs the go command and returns its standard output.
func (p *proxy) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), p.env...)
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// publish adds a module of this repository to the proxy as it would be tagged: without
// the replace lines, which no consumer sees.
func (p *proxy) publish(t *testing.T, folder string) {
	t.Helper()
	source := filepath.Join(tree.Root(t), filepath.FromSlash(folder))
	target := filepath.Join(p.dir, filepath.FromSlash(root+folder), "@v")
	if err := os.MkdirAll(target, 0o700); err != nil {
		t.Fatal(err)
	}
	mod := p.goMod(t, source)
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, p.version, time.Now().UTC().Format(time.RFC3339))
	for name, content := range map[string]string{"list": p.version + "\n", p.version + ".info": info, p.version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(target, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.zip(filepath.Join(target, p.version+".zip"), root+folder, source, mod); err != nil {
		t.Fatal(err)
	}
}

// goMod returns the go.mod of a module as it is published.
func (p *proxy) goMod(t *testing.T, source string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(p.run(t, dir, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	edits := []string{"mod", "edit"}
	for _, r := range mod.Replace {
		edits = append(edits, "-dropreplace="+r.Old.Path)
	}
	for _, r := range mod.Require {
		if strings.HasPrefix(r.Path, root) {
			edits = append(edits, "-require="+r.Path+"@"+p.version)
		}
	}
	if len(edits) > 2 {
		p.run(t, dir, edits...)
	}
	text, err = os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// zip packs the files of a module, without the modules below it.
func (p *proxy) zip(target, module, source, mod string) error {
	file, err := os.Create(target)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	files := os.DirFS(source)
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != ".":
			if _, err := fs.Stat(files, path.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if name == "go.mod" {
			content = []byte(mod)
		}
		w, err := archive.Create(module + "@" + p.version + "/" + name)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, archive.Close())
}

package available

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A workspace is what a go.work says.
type workspace struct {
	goVersion string
	modules   []string          // the folders below the root
	replaced  map[string]string // by path: the path and version that stand for every version of it
}

// readWorkspace reads the go.work at file; dir is the root of the project.
func readWorkspace(ctx context.Context, dir, file string) (workspace, error) {
	var work struct {
		Go      string
		Use     []struct{ DiskPath string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := decode(ctx, dir, &work, "work", "edit", "-json", file); err != nil {
		return workspace{}, err
	}
	w := workspace{goVersion: work.Go, replaced: make(map[string]string)}
	for _, u := range work.Use {
		folder, err := filepath.Rel(dir, filepath.Join(filepath.Dir(file), filepath.FromSlash(u.DiskPath)))
		if err != nil {
			return workspace{}, err
		}
		w.modules = append(w.modules, filepath.ToSlash(folder))
	}
	for _, r := range work.Replace {
		if r.Old.Version != "" || r.New.Version == "" {
			return workspace{}, fmt.Errorf("%s replaces %s by more than a version", file, r.Old.Path)
		}
		w.replaced[r.Old.Path] = r.New.Path + "@" + r.New.Version
	}
	return w, nil
}

// requirements returns what the go.mod of every folder requires of others, as
// path@version, after what the workspace replaces.
func requirements(ctx context.Context, dir string, folders []string, replaced map[string]string) (map[string][]string, error) {
	required := make(map[string][]string)
	for _, folder := range folders {
		var mod struct {
			Require []struct{ Path, Version string }
		}
		file := filepath.Join(dir, filepath.FromSlash(folder), "go.mod")
		if err := decode(ctx, dir, &mod, "mod", "edit", "-json", file); err != nil {
			return nil, err
		}
		required[folder] = []string{}
		for _, r := range mod.Require {
			if strings.HasPrefix(r.Path, Root) {
				continue
			}
			id := r.Path + "@" + r.Version
			if by, found := replaced[r.Path]; found {
				id = by
			}
			required[folder] = append(required[folder], id)
		}
	}
	return required, nil
}

// download gets every module that is not in the module cache, and returns those that the
// proxy refused. It asks for each by its name, because within a module the go command
// gives up at the first one. The build checks what was downloaded against the go.sum
// files.
func download(ctx context.Context, required map[string][]string) (map[string]Refusal, error) {
	refused := make(map[string]Refusal)
	args := []string{"mod", "download", "-json"}
	for _, list := range required {
		args = append(args, list...)
	}
	if len(args) == 3 {
		return refused, nil
	}
	slices.Sort(args[3:])
	empty, err := os.MkdirTemp("", "available")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty)
	cache, err := run(ctx, empty, "off", "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	out, failed := run(ctx, empty, "off", slices.Compact(args)...)
	seen := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var m struct{ Path, Version, Error string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("output of go mod download: %w", err)
		}
		if m.Error != "" && !cached(strings.TrimSpace(string(cache)), m.Path, m.Version) {
			refused[m.Path+"@"+m.Version] = Refusal{Module: m.Path, Version: m.Version, Answer: answer(m.Error)}
		}
	}
	if seen == 0 {
		return nil, failed
	}
	return refused, nil
}

// cached reports whether the module cache has what a build needs of a module: less than
// what "go mod download" asks for.
func cached(cache, module, version string) bool {
	at := filepath.Join(cache, "cache", "download", filepath.FromSlash(escape(module)), "@v", escape(version))
	for _, ext := range []string{".mod", ".zip"} {
		if _, err := os.Stat(at + ext); err != nil {
			return false
		}
	}
	return true
}

// escape writes a module path as the module cache and proxies do: "!a" for "A".
func escape(module string) string {
	var b strings.Builder
	for _, r := range module {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// decode runs the go command and reads its output into v.
func decode(ctx context.Context, dir string, v any, args ...string) error {
	out, err := run(ctx, dir, "off", args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("output of go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// run runs the go command in dir with the given GOWORK, and returns its output also if it
// fails.
func run(ctx context.Context, dir, gowork string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// What a module is checked against is go.sum, here as in the build that follows.
	cmd.Env = append(os.Environ(), "GOWORK="+gowork, "GONOSUMDB=*", "GOFLAGS=-buildvcs=false -modcacherw")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args[:min(len(args), 3)], " "), dir, err, stderr.Bytes())
	}
	return out, err
}

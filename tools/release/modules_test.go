package main

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// newModule returns a module that requires published siblings.
func newModule(t *testing.T, folder string, siblings ...string) module {
	t.Helper()
	m := module{folder, new(modfile.File)}
	if err := m.mod.AddModuleStmt(m.path()); err != nil {
		t.Fatal(err)
	}
	for _, s := range siblings {
		if err := m.mod.AddRequire(prefix+s, "v0.0.0"); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestModulesComeAfterWhatTheyRequire(t *testing.T) {
	t.Parallel()
	sorted, err := inOrder([]module{
		newModule(t, "adapters/gin", "core"),
		newModule(t, "cmd/reprise", "console", "store/redis"),
		newModule(t, "console", "core"),
		newModule(t, "core"),
		newModule(t, "store/redis", "core"),
	})
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]int{}
	for i, m := range sorted {
		place[m.folder] = i
	}
	for _, m := range sorted {
		for _, s := range m.siblings() {
			if place[s] >= place[m.folder] {
				t.Errorf("%s comes before %s, which it requires", m.folder, s)
			}
		}
	}
	if len(sorted) != 5 {
		t.Errorf("%d modules, want 5", len(sorted))
	}
}

func TestModulesThatRequireEachOtherHaveNoOrder(t *testing.T) {
	t.Parallel()
	_, err := inOrder([]module{newModule(t, "core"), newModule(t, "a", "b"), newModule(t, "b", "a", "core")})
	if err == nil || !strings.HasPrefix(err.Error(), "a requires, directly or through others, itself") {
		t.Errorf("error %v, want that a requires itself", err)
	}
}

func TestLabExamplesAndToolsAreNotPublished(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]bool{"core": true, "adapters/gin": true, "cmd/reprise": true, "blob": true, "lab": false, "lab/otel": false, "examples": false, "examples/sql": false, "tools": false, "tools/peers": false} {
		if published(folder) != want {
			t.Errorf("published(%q) = %v, want %v", folder, !want, want)
		}
	}
}

// The graph of a consumer has modules that only a go.mod asks for.
func TestStrangersInAGraphAreFound(t *testing.T) {
	t.Parallel()
	const text = `example.com/consumer github.com/reprise-go/reprise/adapters/gin@v1.0.0
example.com/consumer b.test/framework@v1.2.0
example.com/consumer c.test/needed@v1.0.0
example.com/consumer d.test/testing@v1.0.0
example.com/consumer go@1.26
github.com/reprise-go/reprise/adapters/gin@v1.0.0 b.test/framework@v1.1.0
github.com/reprise-go/reprise/adapters/gin@v1.0.0 c.test/needed@v1.0.0
github.com/reprise-go/reprise/adapters/gin@v1.0.0 d.test/testing@v1.0.0
b.test/framework@v1.2.0 c.test/needed@v0.9.0
d.test/testing@v1.0.0 e.test/more@v1.0.0
go@1.26 toolchain@go1.26
`
	asked := newModule(t, "adapters/gin")
	if err := asked.mod.AddRequire("b.test/framework", "v1.1.0"); err != nil {
		t.Fatal(err)
	}
	got := parseGraph(text).strangers([]module{asked}, nil)
	if want := []string{"d.test/testing", "e.test/more"}; !slices.Equal(got, want) {
		t.Errorf("strangers %v, want %v", got, want)
	}
}

// A client of another store is a stranger even if code of the project imports it.
func TestClientsOfOtherStoresAreStrangers(t *testing.T) {
	t.Parallel()
	const text = `example.com/consumer github.com/reprise-go/reprise/adapters/gin@v1.0.0
github.com/reprise-go/reprise/adapters/gin@v1.0.0 b.test/framework@v1.1.0
github.com/reprise-go/reprise/adapters/gin@v1.0.0 github.com/reprise-go/reprise/core@v1.0.0
github.com/reprise-go/reprise/core@v1.0.0 c.test/client@v1.0.0
github.com/reprise-go/reprise/core@v1.0.0 d.test/parser@v1.0.0
`
	asked, core, store := newModule(t, "adapters/gin", "core"), newModule(t, "core"), newModule(t, "store/c", "core")
	for _, err := range []error{asked.mod.AddRequire("b.test/framework", "v1.1.0"), store.mod.AddRequire("c.test/client", "v1.0.0")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	released := []module{core, asked, store}
	if got, want := parseGraph(text).strangers([]module{asked}, released), []string{"c.test/client"}; !slices.Equal(got, want) {
		t.Errorf("strangers %v, want %v", got, want)
	}
	if got := parseGraph(text).strangers([]module{asked, store}, released); len(got) > 0 {
		t.Errorf("strangers %v of one who asked for the store, want none", got)
	}
}

package conformance_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/storetest"
)

// The README says how many cases there are, in round numbers.
func TestReadmeCountsTheCases(t *testing.T) {
	t.Parallel()
	for what, n := range map[string]int{
		"show what clients observe": len(adaptertest.Cases()),
		"show the store contract":   len(storetest.Cases()),
	} {
		m := regexp.MustCompile(`ore than (\d+) cases ` + what).FindStringSubmatch(readme(t))
		if m == nil {
			t.Fatalf("README.md does not say how many cases %s", what)
		}
		if said, _ := strconv.Atoi(m[1]); said >= n || n > said+50 {
			t.Errorf("README.md says that more than %d cases %s; there are %d", said, what, n)
		}
	}
}

// The README names the oldest release of each framework and client, which is the one that
// the module requires.
func TestReadmeNamesTheOldestReleases(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ module, path, name string }{
		{"adapters/gin", "github.com/gin-gonic/gin", "Gin"},
		{"adapters/echo", "github.com/labstack/echo/v4", "Echo"},
		{"adapters/fiber", "github.com/gofiber/fiber/v2", "Fiber"},
		{"store/redis", "github.com/redis/go-redis/v9", "go-redis"},
		{"store/postgres", "github.com/jackc/pgx/v5", "pgx"},
		{"store/etcd", "go.etcd.io/etcd/client/v3", "clientv3"},
	} {
		wantInReadme(t, row.name+" "+required(t, row.module, row.path+` v(\d+\.\d+)`)+" or newer")
	}
	wantInReadme(t, "Go "+required(t, "core", `(?m)^go (\d+\.\d+)`)+" or newer")
}

// required returns the match of pattern in the go.mod of a module.
func required(t *testing.T, module, pattern string) string {
	t.Helper()
	text, err := os.ReadFile("../" + module + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s/go.mod has no %s", module, pattern)
	}
	return string(m[1])
}

func wantInReadme(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(readme(t), text) {
		t.Errorf("README.md does not say %q", text)
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package conformance_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/storetest"
)

// The README says how many cases there are, rounded down to tens.
func TestReadmeCountsTheCases(t *testing.T) {
	t.Parallel()
	wantInReadme(t, fmt.Sprintf("More than %d cases show what clients observe", tens(len(adaptertest.Cases()))))
	wantInReadme(t, fmt.Sprintf("more than %d cases show the store contract", tens(len(storetest.Cases()))))
}

// tens returns the greatest multiple of ten below n.
func tens(n int) int { return (n - 1) / 10 * 10 }

// The README names the oldest release of each framework and client, which is the one that the module requires.
func TestReadmeNamesTheOldestReleases(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ module, path, name string }{
		{"adapters/gin", "github.com/gin-gonic/gin", "Gin"},
		{"adapters/echo", "github.com/labstack/echo/v4", "Echo"},
		{"adapters/fiber", "github.com/gofiber/fiber/v2", "Fiber"},
		{"store/redis", "github.com/redis/go-redis/v9", "go-redis"},
		{"store/postgres", "github.com/jackc/pgx/v5", "pgx"},
	} {
		wantInReadme(t, row.name+" "+required(t, row.module, row.path+` v(\d+\.\d+)`)+" or newer")
	}
	wantInReadme(t, "| Go | "+required(t, "core", `(?m)^go (\d+\.\d+)`)+" or newer |")
}

// required returns what the pattern finds in the go.mod of a module.
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
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), text) {
		t.Errorf("README.md does not say %q", text)
	}
}

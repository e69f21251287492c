package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// The rules of depguard in .golangci.yml. Each file breaks one of them, in a package of a
// copy of the project.
func TestLinterRefusesImports(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	if err := os.Symlink(filepath.Join(tree.Root(t), ".bin"), filepath.Join(dir, ".bin")); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--enable-only", "depguard"}
	broken := []struct{ file, imported, rule string }{
		{"core/bad/x.go", "github.com/dunglas/httpsfv", "core"},
		{"core/http/x.go", "net/http", "transport"},
		{"core/up/x.go", root + "core/protocol", "floors"},
		{"core/protocol/bad/x.go", root + "core/memstore", "memory"},
		{"core/protocol/test/x_test.go", root + "client", "protocol"},
		{"store/internal/bad/x.go", root + "store/redis", "stores"},
		{"store/redis/bad/x.go", root + "conformance", "redis"},
		{"store/redis/up/x.go", root + "core/protocol", "floors"},
		{"store/postgres/bad/x_test.go", root + "conformance", "postgres"},
		{"adapters/internal/bad/x.go", "github.com/gin-gonic/gin", "adapters"},
		{"adapters/nethttp/bad/x.go", root + "core/memstore", "memory"},
		{"adapters/gin/bad/x.go", "github.com/labstack/echo/v4", "gin"},
		{"adapters/echo/bad/x_test.go", "github.com/gin-gonic/gin", "echo"},
		{"adapters/echo5/bad/x.go", "github.com/labstack/echo/v4", "echo5"},
		{"adapters/internal/fasthttp/bad/x.go", "github.com/gofiber/fiber/v2", "fasthttp"},
		{"adapters/fiber/bad/x.go", root + "store/redis", "fiber"},
		{"adapters/grpc/bad/x.go", "connectrpc.com/connect", "grpc"},
		{"adapters/connect/bad/x.go", "google.golang.org/grpc", "connect"},
		{"client/bad/x.go", root + "core", "client"},
		{"reprisetest/bad/x.go", root + "conformance/storetest", "reprisetest"},
		{"conformance/bad/x.go", "github.com/redis/go-redis/v9", "conformance"},
		{"otel/bad/x.go", root + "core/protocol", "floors"},
		{"console/bad/x.go", root + "store/redis", "console"},
		{"proxy/bad/x.go", root + "store/redis", "proxy"},
		{"cmd/reprise/bad/x.go", root + "adapters/nethttp", "program"},
	}
	for _, b := range broken {
		folder := path.Dir(b.file)
		tree.Write(t, dir, b.file, "package "+path.Base(folder)+"\n\nimport _ \""+b.imported+"\"\n")
		args = append(args, "./"+folder)
	}
	out, ok := tree.Run(t, dir, nil, filepath.Join(dir, ".bin", "golangci-lint"), args...)
	if ok {
		t.Error("the linter passes")
	}
	for _, b := range broken {
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.HasPrefix(line, b.file+":") && strings.Contains(line, "'"+b.imported+"'") && strings.Contains(line, "from list '"+b.rule+"'")
		}
		if !found {
			t.Errorf("%s imports %s, and rule %s does not find it:\n%s", b.file, b.imported, b.rule, out)
		}
	}
}

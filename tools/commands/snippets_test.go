package commands_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

const ours = "github.com/reprise-go/reprise/"

// imported are the packages that the Go blocks of the pages name. Those that gocloud.dev
// needs are found in the module lab/blob, etcd's client in lab/etcd, GORM in
// examples/sql, tokens in examples, and Fiber v3 in
// lab/fiber3.
var imported = map[string]string{
	"reprise": ours + "core", "protocol": ours + "core/protocol", "contract": ours + "core/protocol/contract", "memstore": ours + "core/memstore", "store": ours + "core/store", "stored": ours + "core/protocol/stored",
	"reprisehttp": ours + "adapters/nethttp", "reprisegin": ours + "adapters/gin", "repriseecho": ours + "adapters/echo",
	"repriseecho5": ours + "adapters/echo5", "reprisefiber": ours + "adapters/fiber", "reprisefiber3": ours + "adapters/fiber3", "reprisegrpc": ours + "adapters/grpc",
	"repriseconnect": ours + "adapters/connect", "repriseetcd": ours + "store/etcd", "clientv3": "go.etcd.io/etcd/client/v3", "repriseredis": ours + "store/redis", "reprisepg": ours + "store/postgres",
	"reprisesqlite": ours + "store/sqlite", "reprisemysql": ours + "store/mysql",
	"repriseclient": ours + "client", "reprisegrpcclient": ours + "client/grpc", "repriseconnectclient": ours + "client/connect",
	"repriseblob": ours + "blob", "repriseotel": ours + "otel", "console": ours + "console", "proxy": ours + "proxy",
	"reprisetest": ours + "reprisetest", "conformance": ours + "conformance", "storetest": ours + "conformance/storetest",

	"blob": "gocloud.dev/blob", "connect": "connectrpc.com/connect", "grpc": "google.golang.org/grpc", "credentials": "google.golang.org/grpc/credentials", "emptypb": "google.golang.org/protobuf/types/known/emptypb", "metadata": "google.golang.org/grpc/metadata",
	"gin": "github.com/gin-gonic/gin", "fiber": "github.com/gofiber/fiber/v2", "cors": "github.com/gin-contrib/cors", "gzip": "github.com/gin-contrib/gzip", "requestid": "github.com/gin-contrib/requestid",
	"otelgin":  "go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin",
	"otelecho": "go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho",
	"otelhttp": "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
	"pgx":      "github.com/jackc/pgx/v5", "pgxpool": "github.com/jackc/pgx/v5/pgxpool", "redis": "github.com/redis/go-redis/v9",

	"gorm": "gorm.io/gorm", "jwt": "github.com/golang-jwt/jwt/v5",

	"context": "context", "hex": "encoding/hex", "sha256": "crypto/sha256", "errors": "errors", "fmt": "fmt", "http": "net/http", "httputil": "net/http/httputil", "httptest": "net/http/httptest", "io": "io", "log": "log", "os": "os", "rand": "crypto/rand", "atomic": "sync/atomic",
	"sql": "database/sql", "strings": "strings", "testing": "testing", "time": "time",
}

// beside are the packages whose name means another one beside each adapter.
var beside = map[string]map[string]string{
	"reprisehttp":  {"middleware": "github.com/go-chi/chi/v5/middleware"},
	"repriseecho":  {"middleware": "github.com/labstack/echo/v4/middleware", "echo": "github.com/labstack/echo/v4"},
	"repriseecho5": {"middleware": "github.com/labstack/echo/v5/middleware", "echo": "github.com/labstack/echo/v5"},
	"reprisefiber": {
		"recover": fiberV2 + "recover", "requestid": fiberV2 + "requestid", "cors": fiberV2 + "cors", "compress": fiberV2 + "compress", "limiter": fiberV2 + "limiter", "logger": fiberV2 + "logger",
		"idempotency": fiberV2 + "idempotency",
	},
	"reprisefiber3": {
		"fiber": "github.com/gofiber/fiber/v3", "recover": fiberV3 + "recover", "requestid": fiberV3 + "requestid", "cors": fiberV3 + "cors", "compress": fiberV3 + "compress",
		"limiter": fiberV3 + "limiter", "logger": fiberV3 + "logger", "helmet": fiberV3 + "helmet", "encryptcookie": fiberV3 + "encryptcookie", "csrf": fiberV3 + "csrf",
	},
}

// Where the middlewares of Fiber are.
const (
	fiberV2 = "github.com/gofiber/fiber/v2/middleware/"
	fiberV3 = "github.com/gofiber/fiber/v3/middleware/"
)

// givenBeside are variables whose type depends on the adapter.
var givenBeside = map[string]map[string]string{
	"reprisehttp": {
		"tenantOf": "reprisehttp.Scope", "createOrder": "http.HandlerFunc", "orders": "http.Handler", "proxy": "*httputil.ReverseProxy",
		"authenticate": "func(http.Handler) http.Handler", "cors": "func(http.Handler) http.Handler",
	},
	"reprisegin":     {"tenantOf": "reprisegin.Scope", "createOrder": "gin.HandlerFunc", "authenticate": "gin.HandlerFunc", "config": "cors.Config", "server": "*http.Server"},
	"repriseecho":    {"tenantOf": "repriseecho.Scope", "createOrder": "echo.HandlerFunc", "authenticate": "echo.MiddlewareFunc", "e": "*echo.Echo", "server": "*http.Server"},
	"repriseecho5":   {"tenantOf": "repriseecho5.Scope", "createOrder": "echo.HandlerFunc", "authenticate": "echo.MiddlewareFunc", "e": "*echo.Echo", "server": "*http.Server"},
	"reprisefiber":   {"tenantOf": "reprisefiber.Scope", "createOrder": "fiber.Handler", "app": "*fiber.App", "authenticate": "fiber.Handler", "old": "idempotency.Config"},
	"reprisefiber3":  {"tenantOf": "reprisefiber3.Scope", "createOrder": "fiber.Handler", "app": "*fiber.App", "authenticate": "fiber.Handler", "sessions": "fiber.Handler", "cookies": "encryptcookie.Config"},
	"reprisegrpc":    {"tenantOf": "reprisegrpc.Scope", "recovery": "grpc.UnaryServerInterceptor", "authenticate": "grpc.UnaryServerInterceptor"},
	"repriseconnect": {"tenantOf": "repriseconnect.Scope"},
	"reprisetest":    {"server": "http.Handler"},
	"repriseclient":  {"request": "*http.Request"},
}

// given are the variables that a block uses and does not declare.
var given = map[string]string{
	"ctx": "context.Context", "engine": "*reprise.Engine", "guard": "*protocol.Guard", "store": "store.Store", "pool": "*pgxpool.Pool", "db": "*sql.DB",
	"records": "*reprisepg.Store", "w": "http.ResponseWriter", "r": "*http.Request", "request": "*http.Request", "mux": "*http.ServeMux",
	"router": "*gin.Engine", "t": "*testing.T", "url": "string", "out": "io.Writer",
	"userOf": "func(*http.Request) struct{ Name string }", "employeeOf": "func(*http.Request) struct{ Name string; OnCall, Support bool }",
	"requireEmployee": "func(http.Handler) http.Handler", "id": "string", "message": "[]byte", "body": "[]byte", "orderID": "string",
	"bookingOf": "func(context.Context, string) (*protocol.Response, bool, error)", "order": "*emptypb.Empty", "bytesFromYourVault": "[]byte", "blobs": "protocol.BlobStore", "members": "[]string", "from": "string",
	"tenants": "map[[32]byte]string", "server": "*http.Server",
}

// theirs are the names that stand for the reader's own.
var theirs = []string{
	"Receipt", "results", "cutFirst", "must", "database", "newServer", "open", "app", "ordersv1connect", "orders", "authentication", "tenantOfRequest", "tenantKey",
}

// A block is Go that compiles where the reader's own names stand for something.
func TestGoBlocksCompile(t *testing.T) {
	t.Parallel()
	w := newClone(t)
	blocks := map[string]map[string]block{} // by the module, and the folder in it
	for i, b := range find(t, w.clone) {
		if b.language != "go" || b.because != "" {
			continue
		}
		file, err := sourceOf(b.text)
		if err != nil {
			t.Errorf("%s: %v", b.at, err)
			continue
		}
		module := "lab"
		switch {
		case strings.Contains(file, `"gocloud.dev`), strings.Contains(file, ours+`blob"`):
			module = "lab/blob"
		case strings.Contains(file, ours+`store/etcd"`):
			module = "lab/etcd"
		case strings.Contains(file, `"gorm.io`):
			module = "examples/sql"
		case strings.Contains(file, `"github.com/golang-jwt`):
			module = "examples"
		case strings.Contains(file, ours+`adapters/fiber3"`):
			module = "lab/fiber3"
		}
		folder := fmt.Sprintf("snippet%d", i)
		tree.Write(t, w.clone, module+"/"+folder+"/snippet.go", file)
		if blocks[module] == nil {
			blocks[module] = map[string]block{}
		}
		blocks[module][folder] = b
	}
	for module, inModule := range blocks {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			w.typeCheck(t, module, inModule)
		})
	}
}

func (w *world) typeCheck(t *testing.T, module string, blocks map[string]block) {
	t.Helper()
	dir := filepath.Join(w.clone, filepath.FromSlash(module))
	env := append(os.Environ(), "GOWORK=")
	if module != "lab" {
		env = append(env, "GOWORK=off")
	}
	var patterns []string
	for _, folder := range slices.Sorted(maps.Keys(blocks)) {
		patterns = append(patterns, "./"+folder)
	}
	found, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
		Dir:  dir, Env: env, Context: t.Context(),
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(blocks) {
		t.Errorf("%d packages of %d blocks", len(found), len(blocks))
	}
	for _, p := range found {
		b := blocks[filepath.Base(p.PkgPath)]
		for _, e := range p.Errors {
			if e.Kind != packages.TypeError && !strings.HasPrefix(e.Msg, "# ") { // "# " begins the compiler's list of the errors in TypeErrors
				t.Errorf("%s: %v", b.at, e)
			}
		}
		for _, e := range p.TypeErrors {
			name, undefined := strings.CutPrefix(e.Msg, "undefined: ")
			if !soft(e) && !(undefined && slices.Contains(theirs, name)) {
				t.Errorf("%s: %s, at %s", b.at, e.Msg, e.Fset.Position(e.Pos))
			}
		}
	}
}

// soft reports errors that do not matter in a block: a variable or an import for later
// use.
func soft(e types.Error) bool { return e.Soft }

// dots matches the three dots that stand for statements.
var dots = regexp.MustCompile(`(?m)(^\s*|\{ )…`)

// qualifier matches the package of a type.
var qualifier = regexp.MustCompile(`([a-z0-9]+)\.[A-Z]`)

// packageOf returns the path of the package that a name means in a block.
func packageOf(text, name string) string {
	for adapter, its := range beside {
		if strings.Contains(text, adapter+".") && its[name] != "" {
			return its[name]
		}
	}
	return imported[name]
}

// sourceOf returns a file with a block in it: as it stands if it is one, or with the
// imports and variables that it lacks around it.
func sourceOf(text string) (string, error) {
	if strings.HasPrefix(text, "package ") {
		return text, nil
	}
	text = dots.ReplaceAllString(text, `${1}panic("…")`)
	head, tail := "package snippet\n\n", ""
	set := token.NewFileSet()
	if _, err := parser.ParseFile(set, "", head+text, 0); err != nil {
		head, tail = head+"func _() (_ error) {\n", "\npanic(0)\n}\n"
	}
	parsed, err := parser.ParseFile(set, "", head+text+tail, 0)
	if err != nil {
		return "", err
	}
	bases := map[string]bool{} // of selectors
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && ast.IsExported(s.Sel.Name) {
				bases[x.Name] = true
			}
		}
		return true
	})
	imports, variables := map[string]string{}, map[string]string{}
	for _, free := range parsed.Unresolved {
		path, typ := packageOf(text, free.Name), given[free.Name]
		for _, adapter := range slices.Sorted(maps.Keys(givenBeside)) { // beside two adapters, a name is that of reprisegrpc
			its := givenBeside[adapter]
			if strings.Contains(text, adapter+".") && its[free.Name] != "" {
				typ = its[free.Name]
			}
		}
		switch {
		case bases[free.Name] && path != "" && (typ == "" || free.Name != "store" || strings.Contains(text, "store.FingerprintOf") || strings.Contains(text, "store.Record")):
			imports[free.Name] = path
		case typ != "":
			variables[free.Name] = typ
		}
	}
	var given, needed strings.Builder
	for name, typ := range variables {
		for _, m := range qualifier.FindAllStringSubmatch(typ, -1) {
			pkg := m[1]
			if pkg != name {
				imports[pkg] = packageOf(text, pkg)
			}
			if pkg == name { // a variable that hides the package of its type
				typ, imports["reprisestore"] = "reprisestore."+strings.TrimPrefix(typ, pkg+"."), packageOf(text, pkg)
			}
		}
		fmt.Fprintf(&given, "var %s %s\n", name, typ)
	}
	for name, path := range imports {
		fmt.Fprintf(&needed, "import %s %q\n", name, path)
	}
	return strings.Replace(head, "\n\n", "\n\n"+needed.String()+given.String(), 1) + text + tail, nil
}

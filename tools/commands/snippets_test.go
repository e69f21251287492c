package commands_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/tools/internal/tree"
)

const ours = "github.com/reprise-go/reprise/"

// imported are the packages that the Go blocks of the pages name, by the last part of
// their path, or by the name before it. Some are found in the modules that [moduleOf]
// returns.
var imported = byName(ours, `reprise=core core/job protocol=core/protocol contract=core/protocol/contract memstore=core/memstore store=core/store
	operate=core/operate reprisehttp=adapters/nethttp reprisegin=adapters/gin repriseecho=adapters/echo repriseecho5=adapters/echo5
	reprisefiber=adapters/fiber reprisefiber3=adapters/fiber3 reprisegrpc=adapters/grpc repriseconnect=adapters/connect
	repriseetcd=store/etcd repriseredis=store/redis reprisepg=store/postgres reprisesqlite=store/sqlite reprisemysql=store/mysql
	repriseclient=client reprisegrpcclient=client/grpc repriseconnectclient=client/connect repriseblob=blob repriseotel=otel console proxy
	reprisetest conformance conformance/storetest conformance/adaptertest conformance/adaptertest/testapp`, "", `bufio context encoding/hex crypto/sha256 errors fmt mime/multipart net net/http net/http/httputil
	net/http/httptest io log os crypto/rand sync/atomic database/sql strings testing time log/slog gorm.io/gorm gocloud.dev/blob connectrpc.com/connect
	google.golang.org/grpc google.golang.org/grpc/credentials google.golang.org/protobuf/types/known/emptypb google.golang.org/grpc/metadata
	clientv3=go.etcd.io/etcd/client/v3 github.com/gin-gonic/gin echo=github.com/labstack/echo/v4 fiber=github.com/gofiber/fiber/v2 jwt=github.com/golang-jwt/jwt/v5
	pgx=github.com/jackc/pgx/v5 github.com/jackc/pgx/v5/pgxpool redis=github.com/redis/go-redis/v9 github.com/gin-contrib/cors
	github.com/gin-contrib/gzip github.com/gin-contrib/requestid github.com/valyala/fasthttp/fasthttpadaptor
	go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp
	go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho`)

// byName returns lists of packages by their names, each after the beginning of its paths.
func byName(lists ...string) map[string]string {
	packages := map[string]string{}
	for i := 0; i < len(lists); i += 2 {
		for field := range strings.FieldsSeq(lists[i+1]) {
			name, below, named := strings.Cut(field, "=")
			if !named {
				name, below = path.Base(field), field
			}
			packages[name] = lists[i] + below
		}
	}
	return packages
}

// moduleOf returns the module that has the packages that a block imports.
func moduleOf(file string) string {
	for _, row := range [][2]string{
		{`"gocloud.dev`, "lab/blob"},
		{ours + `blob"`, "lab/blob"},
		{ours + `store/etcd"`, "lab/etcd"},
		{`"gorm.io`, "examples/sql"},
		{`"github.com/golang-jwt`, "examples"},
		{ours + `adapters/fiber3"`, "lab/fiber3"},
	} {
		if strings.Contains(file, row[0]) {
			return row[1]
		}
	}
	return "lab"
}

// beside are the packages whose name means another one beside each adapter.
var beside = map[string]map[string]string{
	"reprisehttp":  {"middleware": "github.com/go-chi/chi/v5/middleware"},
	"repriseecho":  {"middleware": "github.com/labstack/echo/v4/middleware", "echo": "github.com/labstack/echo/v4"},
	"repriseecho5": {"middleware": "github.com/labstack/echo/v5/middleware", "echo": "github.com/labstack/echo/v5"},
	"reprisefiber": byName("github.com/gofiber/fiber/v2/middleware/", "recover requestid cors compress limiter logger idempotency"),
	"reprisefiber3": byName("github.com/gofiber/fiber/v3/middleware/", "recover requestid cors compress limiter logger helmet encryptcookie csrf",
		"", "fiber=github.com/gofiber/fiber/v3"),
}

// givenBeside are variables whose type depends on the adapter.
var givenBeside = map[string]map[string]string{
	"reprisehttp": {
		"tenantOf": "reprisehttp.Scope", "createOrder": "http.HandlerFunc", "orders": "http.Handler", "reverse": "*httputil.ReverseProxy",
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
	"repriseredis":   {"client": "*redis.Client"},
}

// given are the variables that a block uses and does not declare.
var given = map[string]string{
	"ctx": "context.Context", "engine": "*reprise.Engine", "guard": "*protocol.Guard", "store": "store.Store", "pool": "*pgxpool.Pool", "db": "*sql.DB",
	"records": "*reprisepg.Store", "w": "http.ResponseWriter", "r": "*http.Request", "request": "*http.Request", "mux": "*http.ServeMux",
	"router": "*gin.Engine", "t": "*testing.T", "url": "string", "out": "io.Writer",
	"userOf": "func(*http.Request) struct{ Name string }", "employeeOf": "func(*http.Request) struct{ Name string; OnCall, Support bool }",
	"pages": "http.Handler", "e": "*echo.Echo", "requireEmployee": "func(http.Handler) http.Handler", "id": "string", "message": "[]byte", "body": "[]byte", "orderID": "string",
	"bookingOf": "func(context.Context, string) (int, []byte, error)", "order": "*emptypb.Empty", "bytesFromYourVault": "[]byte", "blobs": "protocol.BlobStore", "members": "[]string", "from": "string",
	"tenants": "map[[32]byte]string", "server": "*http.Server",
}

// theirs are the names that stand for the reader's own.
var theirs = []string{
	"Receipt", "results", "cutFirst", "must", "database", "newServer", "open", "app", "ordersv1connect", "orders", "authentication", "tenantOfRequest", "tenantKey", "employees", "build", "waivers",
}

// A block is Go that compiles where the reader's own names stand for something.
func TestGoBlocksCompile(t *testing.T) {
	t.Parallel()
	root := clone(t)
	blocks := map[string]map[string]block{} // by the module, and the folder in it
	for i, b := range find(t, root) {
		if b.language != "go" || b.notRun != "" {
			continue
		}
		file, err := sourceOf(b.text)
		if err != nil {
			t.Errorf("%s: %v", b.at, err)
			continue
		}
		module := moduleOf(file)
		folder := fmt.Sprintf("snippet%d", i)
		tree.Write(t, root, module+"/"+folder+"/snippet.go", file)
		if blocks[module] == nil {
			blocks[module] = map[string]block{}
		}
		blocks[module][folder] = b
	}
	for module, inModule := range blocks {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			typeCheck(t, root, module, inModule)
		})
	}
}

func typeCheck(t *testing.T, root, module string, blocks map[string]block) {
	t.Helper()
	dir := filepath.Join(root, filepath.FromSlash(module))
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
	servers.Must(t, err)
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
			if !e.Soft && !(undefined && slices.Contains(theirs, name)) {
				t.Errorf("%s: %s, at %s", b.at, e.Msg, e.Fset.Position(e.Pos))
			}
		}
	}
}

// dots matches the three dots that stand for statements.
var dots = regexp.MustCompile(`(?m)(^\s*|\{ )…`)

// usesStore matches a block in which store is the package, and not a variable.
var usesStore = regexp.MustCompile(`\bstore\.(FingerprintOf|Record|Resolution|Store)\b`)

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
		from, typ := packageOf(text, free.Name), given[free.Name]
		for _, adapter := range slices.Sorted(maps.Keys(givenBeside)) { // beside two adapters, a name is that of reprisegrpc
			its := givenBeside[adapter]
			if strings.Contains(text, adapter+".") && its[free.Name] != "" {
				typ = its[free.Name]
			}
		}
		switch {
		case bases[free.Name] && from != "" && (typ == "" || free.Name != "store" || usesStore.MatchString(text)):
			imports[free.Name] = from
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
	for name, from := range imports {
		fmt.Fprintf(&needed, "import %s %q\n", name, from)
	}
	return strings.Replace(head, "\n\n", "\n\n"+needed.String()+given.String(), 1) + text + tail, nil
}

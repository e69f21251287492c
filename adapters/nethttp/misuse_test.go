package reprisehttp

import (
	"runtime"
	"strings"
	"testing"
)

// The functions as the runtime names them. Echo's own are called in lab/frameworks, and
// so is Gin; of Fiber, only releases newer than the oldest that is supported have them.
func TestFunctionsThatHideTheResponse(t *testing.T) {
	t.Parallel()
	const modules = "/home/dev/go/pkg/mod/"
	for _, row := range []struct {
		function, file string
		adapter        string // empty: no misuse
		serves         bool
	}{
		{"github.com/labstack/echo/v4.WrapMiddleware.func1.1", modules + "github.com/labstack/echo/v4@v4.12.0/echo.go", "package repriseecho", false},
		{"github.com/labstack/echo/v4.WrapHandler.func1", modules + "github.com/labstack/echo/v4@v4.12.0/echo.go", "", true},
		{"github.com/labstack/echo/v5.WrapMiddleware.func1.1", "github.com/labstack/echo/v5@v5.0.0/echo.go", "package repriseecho5", false},
		{"main.main.WrapMiddleware.func2.1", "github.com/labstack/echo/v5@v5.0.0/echo.go", "package repriseecho5", false}, // inlined, with -trimpath
		{"main.main.WrapHandler.func2", "/src/vendor/github.com/labstack/echo/v4/echo.go", "", true},
		{"github.com/gofiber/fiber/v2/middleware/adaptor.HTTPMiddleware.func1", modules + "github.com/gofiber/fiber/v2@v2.52.15/middleware/adaptor/adaptor.go", "package reprisefiber", false},
		{"github.com/gofiber/fiber/v3/middleware/adaptor.HTTPMiddleware.func1", modules + "github.com/gofiber/fiber/v3@v3.1.0/middleware/adaptor/adaptor.go", "package reprisefiber3", false},
		{"github.com/gofiber/adaptor/v2.HTTPMiddleware.func1", modules + "github.com/gofiber/adaptor/v2@v2.2.1/adaptor.go", "package reprisefiber", false},
		{"github.com/gofiber/fiber/v2/middleware/adaptor.HTTPHandler.func1", modules + "github.com/gofiber/fiber/v2@v2.52.15/middleware/adaptor/adaptor.go", "", true},
		{"github.com/gofiber/fiber/v2.(*Ctx).Next", modules + "github.com/gofiber/fiber/v2@v2.52.15/ctx.go", "", true},
		{"github.com/gofiber/fiber/v3.(*DefaultCtx).Next", modules + "github.com/gofiber/fiber/v3@v3.1.0/ctx.go", "", true},
		{"github.com/labstack/echo/v4.(*Echo).ServeHTTP", modules + "github.com/labstack/echo/v4@v4.12.0/echo.go", "", false},
		{"example.com/shop.WrapMiddleware", "/src/shop/wrap.go", "", false},
		{"net/http.HandlerFunc.ServeHTTP", "/usr/lib/go/src/net/http/server.go", "", false},
	} {
		misuse, serves := judge(row.function, row.file)
		if serves != row.serves || (misuse == "") != (row.adapter == "") || !strings.HasSuffix(misuse, row.adapter) {
			t.Errorf("%s: %q, %v, want %q, %v", row.function, misuse, serves, row.adapter, row.serves)
		}
	}
}

// A function that adapts another middleware is on the stack too, below the handler of
// which a middleware is made.
func TestMisuseIsJudgedByTheCaller(t *testing.T) {
	t.Parallel()
	const (
		echo    = "github.com/labstack/echo/v4."
		fiber   = "github.com/gofiber/fiber/v2."
		adapts  = fiber + "middleware/adaptor.HTTPMiddleware.func1"
		handler = "net/http.HandlerFunc.ServeHTTP"
	)
	for _, row := range []struct {
		misuse bool
		stack  []string // from the inside out
	}{
		{true, []string{"main.layer", echo + "WrapMiddleware.func1.1", echo + "(*Echo).ServeHTTP"}},
		{true, []string{"main.layer.func1", handler, echo + "WrapMiddleware.func1.1", echo + "(*Echo).ServeHTTP"}}, // made for each request
		{true, []string{"main.layer", echo + "WrapMiddleware.func1.1", echo + "WrapMiddleware.func1.1.1", handler, "main.other.func1", handler, echo + "WrapMiddleware.func1.1"}},
		{true, []string{"main.layer", echo + "WrapMiddleware.func1.1"}}, // where the stack is cut off
		{false, []string{"main.handler", echo + "WrapMiddleware.func1.1.1", handler, "main.other.func1", handler, echo + "WrapMiddleware.func1.1", echo + "(*Echo).ServeHTTP"}},
		{false, []string{"main.handler", echo + "WrapMiddleware.func1.1.1", "main.other.func1", handler, echo + "WrapMiddleware.func1.1"}}, // called as a function
		{false, []string{"main.handler.func1", handler, echo + "WrapHandler.func1", echo + "WrapMiddleware.func1.1.1", handler}},
		{true, []string{"main.layer", adapts, fiber + "(*Ctx).Next"}},
		{false, []string{"main.handler", fiber + "(*Ctx).Next", adapts, fiber + "(*App).next"}},
		{false, []string{"main.main"}},
	} {
		left := row.stack
		misuse := misuseIn(func() (frame runtime.Frame, more bool) {
			if len(left) > 0 {
				frame.Function, left = left[0], left[1:]
			}
			return frame, len(left) > 0
		})
		if (misuse != "") != row.misuse {
			t.Errorf("%q: %q, want a misuse: %v", row.stack, misuse, row.misuse)
		}
	}
}

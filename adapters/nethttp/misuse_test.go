package reprisehttp

import (
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
		adapter        string // empty: nothing is wrong
		serves         bool
	}{
		{"github.com/labstack/echo/v4.WrapMiddleware.func1.1", modules + "github.com/labstack/echo/v4@v4.12.0/echo.go", "package repriseecho", false},
		{"github.com/labstack/echo/v4.WrapHandler.func1", modules + "github.com/labstack/echo/v4@v4.12.0/echo.go", "", true},
		{"github.com/labstack/echo/v5.WrapMiddleware.func1.1", "github.com/labstack/echo/v5@v5.0.0/echo.go", "package repriseecho5", false},
		{"main.main.WrapMiddleware.func2.1", "github.com/labstack/echo/v5@v5.0.0/echo.go", "package repriseecho5", false}, // inlined, with -trimpath
		{"main.main.WrapHandler.func2", "/src/vendor/github.com/labstack/echo/v4/echo.go", "", true},
		{"github.com/gofiber/fiber/v2/middleware/adaptor.HTTPMiddleware.func1", modules + "github.com/gofiber/fiber/v2@v2.52.15/middleware/adaptor/adaptor.go", "package reprisefiber", false},
		{"github.com/gofiber/fiber/v3/middleware/adaptor.HTTPMiddleware.func1", modules + "github.com/gofiber/fiber/v3@v3.1.0/middleware/adaptor/adaptor.go", "package reprisefiber", false},
		{"github.com/gofiber/adaptor/v2.HTTPMiddleware.func1", modules + "github.com/gofiber/adaptor/v2@v2.2.1/adaptor.go", "package reprisefiber", false},
		{"github.com/gofiber/fiber/v2/middleware/adaptor.HTTPHandler.func1", modules + "github.com/gofiber/fiber/v2@v2.52.15/middleware/adaptor/adaptor.go", "", true},
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

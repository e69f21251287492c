package reprisegin

import (
	"net/http"
	"os"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode) // no debug logs
	os.Exit(m.Run())
}

// fixture is a Gin engine on a real listener.
type fixture struct {
	*gin.Engine
	*harness.App

	guarded gin.HandlerFunc // the middleware of a guard with the policy of setup
}

func setup(t *testing.T, policy protocol.Config) *fixture {
	t.Helper()
	engine := gin.New()
	b := &fixture{Engine: engine, App: harness.New(t, memstore.New(), engine)}
	b.guarded = Middleware(b.Guard(policy), Unscoped)
	return b
}

// counted counts the runs of a handler.
func (b *fixture) counted(h gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		b.Count()
		h(c)
	}
}

// created is the handler of most tests.
func created(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"id": 7}) }

const createdBody = `{"id":7}`

package reprisegin

import (
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

// R22, R24: a form that a layer outside parsed is compared, too.
func TestR24FormThatALayerOutsideParsed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/payments", func(c *gin.Context) { c.PostForm("csrf") }, b.guarded, b.counted(func(c *gin.Context) {
		c.String(http.StatusOK, "paid "+c.PostForm("amount"))
	}))
	b.CheckForm("/payments", "k", harness.URLEncoded)
	b.Ran(1)
}

// The server removes the files of a form that was parsed from its own request, so it has
// to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	files := harness.TempFiles(t)
	b := setup(t, protocol.Config{})
	b.MaxMultipartMemory = 1
	b.POST("/upload", b.guarded, func(c *gin.Context) {
		form, err := c.MultipartForm()
		if err != nil || len(form.File["f"]) != 1 {
			t.Errorf("form %v, %v", form, err)
		}
		files.Check(t, 1) // while the handler runs
	})
	b.CheckUpload("/upload", 100_000, files)
}

// R50: a body of which a layer outside consumed a part is refused, except where Gin keeps
// its bytes: then it is compared, and the handler reads it.
func TestR50ConsumedBody(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	echoes := b.counted(func(c *gin.Context) {
		body, _ := io.ReadAll(c.Request.Body)
		c.String(http.StatusOK, "%s", body)
	})
	b.POST("/bound", func(c *gin.Context) { _ = c.ShouldBindBodyWith(new(any), binding.JSON) }, b.guarded, echoes)
	b.CheckConsumed("/bound", true)
	b.Ran(harness.ConsumedRuns)
	b.POST("/decoded", func(c *gin.Context) { _ = c.ShouldBindJSON(new(any)) }, b.guarded, echoes)
	b.CheckConsumed("/decoded", false)
	b.Ran(harness.ConsumedRuns)
}

// The handler, too, may bind a body that a layer outside bound.
func TestR50BodyThatIsBoundTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	bind := func(c *gin.Context) { _ = c.ShouldBindBodyWith(new(any), binding.JSON) }
	b.POST("/", bind, b.guarded, func(c *gin.Context) {
		var got struct{ Amount int }
		if err := c.ShouldBindBodyWith(&got, binding.JSON); err != nil {
			t.Error(err)
		}
		c.String(http.StatusOK, "paid %d", got.Amount)
	})
	if got, err := b.Try(b.Request("POST", "/", `{"amount":1}`, "Idempotency-Key", "k")); err != nil || got.Body != "paid 1" {
		t.Errorf("%+v, %v", got, err)
	}
}

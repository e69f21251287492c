package reprisegin

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

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

package reprisegin

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/core/protocol"
)

// R22, R24: a form that a layer outside parsed is compared all the same.
func TestR24FormThatALayerOutsideParsed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/payments", func(c *gin.Context) { c.PostForm("csrf") }, b.guarded, b.counted(func(c *gin.Context) {
		c.String(http.StatusOK, "paid "+c.PostForm("amount"))
	}))
	for _, row := range []struct {
		body, answer string
		status       int
	}{{"amount=1", "paid 1", 200}, {"amount=1", "paid 1", 200}, {"amount=1000", "", 422}} {
		a, err := b.try(b.request("POST", "/payments", row.body, "Idempotency-Key", "k", "Content-Type", "application/x-www-form-urlencoded"))
		if err != nil || a.status != row.status || row.answer != "" && a.body != row.answer {
			t.Errorf("%s: %+v, %v", row.body, a, err)
		}
	}
	b.ran(1)
}

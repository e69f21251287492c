package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
)

// A page says when it was read. One that was asked for refreshes itself; the answer to a
// form, or one with a notice, never does.
func TestOnlyReadPagesRefresh(t *testing.T) {
	inTime(t, func(b *bench) {
		stuck, _ := b.lapsed("stuck")
		done := b.answered("done", protocol.Response{Status: 200})
		read := "Read at <time datetime=\"" + time.Now().UTC().Format(time.RFC3339)
		for _, path := range []string{"/", "/records", "/trail", recordPage(stuck)} {
			got := b.get(path)
			b.want(path, got, 200, read)
			if strings.Count(got.raw, "<script>") != 1 || strings.Contains(got.raw, "http-equiv") {
				b.Errorf("%s does not refresh itself: %s", path, got.raw)
			}
		}
		for what, got := range map[string]page{
			"find":     b.get("/find"),
			"a notice": b.get(recordPage(done) + "?done=answered"),
			"revealed": b.reveal(done),
			"refused":  b.post(recordPage(stuck), url.Values{"action": {"forget"}}),
			"several":  b.post("/several", url.Values{"store": {"main"}, "record": {done.String() + " completed 1"}}),
			"not here": b.get("/nowhere"),
		} {
			if strings.Contains(got.raw, "<script") {
				b.Errorf("%s refreshes itself", what)
			}
		}
	})
}

package console_test

import (
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Where a retry takes a lapsed record over, no human is needed, and the pages do not hide
// the others among such records. The last attempt of a policy is another matter.
func TestRecordsThatWaitForARetryNeedNoHuman(t *testing.T) {
	change := func(c *protocol.Config) { c.Preset, c.MaxAttempts = reprise.Recoverable, 2 }
	inTimeWith(t, change, func(b *bench) {
		claim := func(id store.ID) {
			b.claimed(id, store.ClaimRequest{Policy: store.Policy{Label: "payments"}, Lease: time.Second, Takeover: true})
			time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		}
		waits, last := store.ID{1}, store.ID{2}
		claim(last)
		claim(last)
		claim(waits)
		home := b.get("/")
		b.want("home", home, 200, last.Short(), "1 lapsed</a> wait for a retry", `<td data-label="Stuck">1</td>`)
		list := b.get("/records?state=stuck")
		b.want("list", list, 200, last.Short())
		if strings.Contains(home.text, waits.Short()) || strings.Contains(list.text, waits.Short()) {
			b.Error("a record that a retry takes over is among those that need a human")
		}
		b.want("all lapsed", b.get("/records?state=lapsed"), 200, last.Short(), waits.Short())
	})
}

package console_test

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// A policy that refuses unsealed answers would never replay one that an operator types:
// it is refused before it is written, or logged.
func TestAnswerThatThePolicyCannotReplayIsRefused(t *testing.T) {
	secret, err := protocol.NewSecret("2026-11", bytes.Repeat([]byte("s"), 32))
	must(t, err)
	strict := func(c *protocol.Config) { c.Seal = protocol.Sealing{Secret: secret, Strict: true} }
	inTimeWith(t, strict, func(b *bench) {
		id, fence := b.lapsed("stuck")
		form := answerForm(id, fence)
		b.want("answer", b.post(recordPage(id), form), 422, "its policy could not replay this answer", "Nothing was changed", "ledger entry 17")
		form.Set("record", id.String()+" lapsed "+form.Get("fence"))
		form.Set("store", "main")
		form.Set("confirm", "answer 1")
		b.want("several", b.post("/several", form), 200, "0 of 1 records were resolved", "its policy could not replay this answer")
		if record, err := b.store.Inspect(b.Context(), id); err != nil || record.State != store.StateLapsed || b.log.Len() > 0 {
			b.Errorf("the record is %+v, %v, and the log %q", record, err, &b.log)
		}
	})
}

// Where an answer might not be replayed, the pages say so before it is typed.
func TestDoubtAboutAnAnswerIsShown(t *testing.T) {
	secret, err := protocol.NewSecret("2026-11", bytes.Repeat([]byte("s"), 32))
	must(t, err)
	strict := func(c *protocol.Config) { c.Seal = protocol.Sealing{Secret: secret, Strict: true} }
	inTimeWith(t, strict, func(b *bench) {
		own, _ := b.lapsed("stuck")
		foreign := store.DeriveID("tenant", "", "of job.Do")
		b.claimed(foreign, store.ClaimRequest{Policy: store.Policy{Label: "invoices", AtMostOnce: true}, Lease: time.Second})
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		for id, says := range map[store.ID]string{own: "No answer can be recorded here.", foreign: "or for an operation of job.Do, every retry would get 500 record-corrupt"} {
			record, err := b.store.Inspect(b.Context(), id)
			must(b, err)
			b.want("record", b.get(recordPage(id)), 200, says)
			b.want("several", b.post("/several", url.Values{"store": {"main"}, "record": {fmt.Sprint(id, " lapsed ", record.Fence)}}), 200, says)
		}
	})
	inTime(t, func(b *bench) {
		if id, _ := b.lapsed("stuck"); strings.Contains(b.get(recordPage(id)).text, "every retry would get") {
			b.Error("there is doubt about a policy of this process")
		}
	})
}

package console_test

import (
	"bytes"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// A policy that refuses unsealed answers would never replay one that an operator types:
// it is refused before it is written, or logged.
func TestAnswerThatThePolicyCannotReplayIsRefused(t *testing.T) {
	secret, err := protocol.NewSecret("2026-11", bytes.Repeat([]byte("s"), 32))
	if err != nil {
		t.Fatal(err)
	}
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

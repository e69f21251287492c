package command

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// A recorded result that is no plain response is shown as far as it can be read: the head
// and the name of a body in a blob store, the kind of a result of Do, and of a sealed
// response no more than its clear head.
func TestAnswersOfEveryKindAreShown(t *testing.T) {
	t.Parallel()
	offloaded, err := hex.DecodeString("010800c80001000000190000002d00000c0008436f6e74656e742d54797065746578742f637376" +
		"01000000000000002bd7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e5920000512bb00551b1")
	must(t, err)
	value, err := job.EncodeResult(nil, "private", nil)
	must(t, err)
	failure, err := job.EncodeResult(nil, 0, errors.New("the bank refused"))
	must(t, err)
	secret, err := protocol.NewSecret("2026-11", make([]byte, 32))
	must(t, err)
	encoded, err := operate.Encode(protocol.Response{Status: 201, Body: []byte("private")})
	must(t, err)
	sealed := func(clearHead bool) []byte {
		payload, err := protocol.Sealing{Secret: secret, ClearHead: clearHead}.Seal(encoded, "k", store.ID{}, store.Fingerprint{})
		must(t, err)
		return payload
	}
	const blob = `"body_size":43,"blob":"20261122/d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592"`
	for name, c := range map[string]struct {
		payload []byte
		shown   []string
		hidden  string
	}{
		"in a blob store":         {offloaded, []string{"next: 200, marked", "43 bytes from the blob store", `"status":200,"header":[{`, "200 OK}] [Content-Type", blob}, `"body":`},
		"a value of Do":           {value, []string{"through job.Do", "lines: [[{2 not an HTTP response, but a result of job.Do: it is a value of 9 bytes", `"problem":`}, "private"},
		"a failure of Do":         {failure, []string{"state: completed (a failure)"}, `"body":`},
		"a result that broke off": {failure[:len(failure)-1], []string{"state: completed (unreadable)"}, `"body":`},
		"sealed":                  {sealed(false), []string{"the sealed response", `"sealed":true`, "lines: [[{2 reprise: the response is sealed"}, "201"},
		"sealed but for its head": {sealed(true), []string{"the sealed response", `"sealed":true`, "201 Created}] [{2 reprise: the response is sealed", `"status":201`}, "private"},
	} {
		r := store.Record{State: store.StateCompleted, Payload: c.payload}
		document, err := json.Marshal(newAnswerJSON(answerOf(&r), true))
		must(t, err)
		text := fmt.Sprintf("state: %s\nnext: %s\nlines: %v\n%s", stateOf(&r).Text, nextFor(&r), answerLines(answerOf(&r), true), document)
		for _, part := range c.shown {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s is missing:\n%s", name, part, text)
			}
		}
		for _, part := range []string{c.hidden, "private", `"body":`} {
			if strings.Contains(text, part) {
				t.Errorf("%s: %s is shown:\n%s", name, part, text)
			}
		}
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// The layer of -outer-body bind binds as each framework does. What that leaves of the
// body is for the handler, and a request of which it leaves nothing to compare is
// refused.
func TestBoundBodyIsWhatTheFrameworkLeaves(t *testing.T) {
	t.Parallel()
	const (
		object = `{"amount":1}`
		form   = "amount=1"

		refused = -1
	)
	for adapter, left := range map[string]struct{ object, form int }{
		"nethttp": {len(object), 0}, // there is nothing that binds JSON
		"gin":     {len(object), 0}, // the adapter puts back what Gin keeps
		"echo":    {refused, 0},
		"echo5":   {refused, 0},
		"fiber":   {len(object), len(form)}, // bodies are in memory
		"fiber3":  {len(object), len(form)},
	} {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			addr := testapp.InTest(adapters[adapter])(t, adaptertest.Options{Store: memstore.New(), OuterBody: adaptertest.Binds})
			for _, c := range []struct {
				mediaType, body string
				left            int
			}{{"application/json", object, left.object}, {"application/x-www-form-urlencoded", form, left.form}} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/t/bound", strings.NewReader(c.body))
				labtest.Must(t, err)
				r.Header.Set("Content-Type", c.mediaType)
				r.Header.Set("Idempotency-Key", c.mediaType)
				r.Header.Set(adaptertest.ProgramHeader, adaptertest.Program{Echo: true}.Header())
				got, err := new(http.Client).Do(r)
				labtest.Must(t, err)
				var echo adaptertest.Echo
				err = json.NewDecoder(got.Body).Decode(&echo)
				_ = got.Body.Close()
				if got.StatusCode == http.StatusBadRequest {
					echo.BodyLength = refused
				}
				if err != nil || echo.BodyLength != c.left {
					t.Errorf("%s: %s, %v, the handler reads %d bytes, want %d", c.mediaType, got.Status, err, echo.BodyLength, c.left)
				}
			}
		})
	}
}

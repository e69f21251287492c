package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

// findLook bounds the reading of a store for the beginning of an ID.
const findLook = 20 * time.Second

// findForm asks for the parts of an ID, or for the ID.
func (s *site) findForm(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, "find", page{Heading: "Find a record"})
}

// find sends the browser to a record. The key comes in the body of the form, so that it
// is in no address, history or access log, and only the ID leaves this function.
func (s *site) find(w http.ResponseWriter, r *http.Request) {
	if !s.readForm(w, r, 64<<10) {
		return
	}
	st := r.PostForm.Get("store")
	inspector, ok := s.inspector(st)
	if !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return
	}
	if digits := len(strings.TrimSpace(r.PostForm.Get("id"))); digits > 0 && digits < 2*len(store.ID{}) {
		select {
		case s.search <- struct{}{}:
			defer func() { <-s.search }()
		default:
			s.fail(w, r, http.StatusTooManyRequests, "Another search by the beginning of an ID reads the store. Try again when it has ended, or give all 64 digits.")
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), findLook)
	defer cancel()
	id, err := findID(ctx, inspector, r)
	if err == nil {
		redirect(w, recordPath(st, id))
		return
	}
	p := page{Heading: "Find a record", Failed: true}
	status := http.StatusUnprocessableEntity
	var several *operate.AmbiguousError
	switch {
	case errors.As(err, &several):
		p.Notice, p.View = "Several records begin with these digits.", table{Root: root(r), Store: st, Rows: rows(several.Records)}
	case ctx.Err() != nil:
		status, p.Notice = http.StatusGatewayTimeout, "The store was not read to its end in "+duration(findLook)+". Give all 64 digits, or the scope and the key."
	case errors.Is(err, store.ErrNotFound):
		status, p.Notice = http.StatusNotFound, "No record begins with these digits. If they are a client's key, find it by its scope. "+
			"Otherwise it was never claimed, was released, or its retention has ended."
	case errors.Is(err, store.ErrInvalid):
		p.Notice = sentence(err)
	default:
		status, p.Notice = storeFailure(err)
	}
	s.show(w, r, status, "find", p)
}

// findID returns the ID that a form names, by its digits or by its scope and key.
func findID(ctx context.Context, inspector store.Inspector, r *http.Request) (store.ID, error) {
	get := r.PostForm.Get
	if text := strings.TrimSpace(get("id")); text != "" {
		return operate.FindID(ctx, inspector, text, nil)
	}
	scope, key := get("scope"), strings.TrimSpace(get("key"))
	if get("unscoped") != "" {
		scope = operate.SharedScope
	}
	if scope == "" || key == "" {
		return store.ID{}, fmt.Errorf("%w: fill in the ID, or the scope and the key", store.ErrInvalid)
	}
	return operate.KeyID(scope, get("endpoint"), key)
}

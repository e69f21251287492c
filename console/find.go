package console

import (
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// findForm asks for the parts of an ID, or for the ID.
func (s *site) findForm(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, "find", page{Heading: "Find a record"})
}

// find sends the browser to a record. The key comes in the body of the form, so that it
// is in no address, history or access log, and only the ID leaves this function.
func (s *site) find(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form could not be read.")
		return
	}
	st, text := r.PostForm.Get("store"), r.PostForm.Get("id")
	if _, ok := s.inspector(st); !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return
	}
	again := func(message string) {
		s.show(w, r, http.StatusUnprocessableEntity, "find", page{Heading: "Find a record", Notice: message, Failed: true})
	}
	if text != "" {
		id, err := store.ParseID(text)
		if err != nil {
			again("An ID has 64 hexadecimal digits. Logs show the first 12 of them: find the record in the list, or by its key.")
			return
		}
		redirect(w, recordPath(st, id))
		return
	}
	scope, key := r.PostForm.Get("scope"), r.PostForm.Get("key")
	if r.PostForm.Get("unscoped") != "" {
		scope = protocol.SharedScope
	}
	if scope == "" || key == "" {
		again("Fill in the ID, or the scope and the key.")
		return
	}
	redirect(w, recordPath(st, store.DeriveID(scope, r.PostForm.Get("endpoint"), key)))
}

package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

func (s *site) notFound(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, r, http.StatusMethodNotAllowed, "The console has no such form.")
		return
	}
	s.fail(w, r, http.StatusNotFound, "The console has no such page.")
}

// storeFailure returns the status and the sentence for an error of a store.
func storeFailure(err error) (status int, message string) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, "There is no record with this ID. It was never claimed, was released, or its retention has ended. " +
			"Another scope, endpoint or key is another ID."
	case errors.Is(err, operate.ErrNotAudited):
		return http.StatusInternalServerError, "The log could not be written. Nothing was changed."
	case errors.Is(err, store.ErrRecordChanged):
		return http.StatusConflict, "The record has changed since it was shown. Nothing was changed."
	case errors.Is(err, store.ErrInvalid):
		return http.StatusUnprocessableEntity, sentence(err)
	case errors.Is(err, store.ErrMisconfigured):
		return http.StatusBadGateway, "The store refused the operation. Its user may lack a permission: " + err.Error() + "."
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrNotReplicated):
		return http.StatusBadGateway, "It is not certain whether a change was written: look at the record again. " + err.Error() + "."
	default:
		return http.StatusBadGateway, "The store could not be read: " + err.Error() + "."
	}
}

// sentence returns the text of a [store.ErrInvalid] as a sentence.
func sentence(err error) string {
	text := strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+": ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// changeFailure returns the status and the sentence for the error of a change.
func changeFailure(err error) (status int, message string) {
	status, message = storeFailure(err)
	if status == http.StatusUnprocessableEntity {
		message += " Nothing was changed."
	}
	return status, message
}

package combinations

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

//nolint:paralleltest // Run needs the processor for itself
func TestCombinations(t *testing.T) {
	Run(t, 10_000, func(guard *protocol.Guard, scope Scope, next http.Handler) http.Handler {
		return reprisehttp.Middleware(guard, reprisehttp.Scope(scope))(next)
	})
}

// TestEveryFieldIsDrawn fails for a new field that no draw sets.
func TestEveryFieldIsDrawn(t *testing.T) {
	t.Parallel()
	elsewhere := []string{
		"Select",            // drawService: a policy for version 2
		"Offload.ReadOnly",  // Offload.Blobs clears it
		"Seal.OtherSecrets", // basePolicy
		"Engine.Log",        // start: nothing
	}
	drawn := elsewhere
	for _, f := range slices.Concat(policyFields, engineFields, storeFields) {
		drawn = append(drawn, f.name)
	}
	for _, name := range slices.Concat(fieldsOf("", reflect.TypeFor[protocol.Config]()), fieldsOf("", reflect.TypeFor[memstore.Bounds]())) {
		if !slices.Contains(drawn, name) {
			t.Errorf("%s is not drawn: add it to the table of its configuration", name)
		}
	}
}

// fieldsOf returns the names of the fields of a configuration, those of its groups with
// the group's.
func fieldsOf(prefix string, config reflect.Type) (list []string) {
	for _, f := range reflect.VisibleFields(config) {
		name := prefix + f.Name
		if f.Type.Kind() == reflect.Struct && f.Type.NumField() > 0 && f.Type.Field(0).IsExported() {
			list = append(list, fieldsOf(name+".", f.Type)...)
			continue
		}
		list = append(list, strings.TrimPrefix(name, "."))
	}
	return list
}

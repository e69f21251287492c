package reprisepg

import (
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// TestStatementsNameTheTableAndHaveNoComments: each is there, has no comment and no
// placeholder, and names the table where it writes.
func TestStatementsNameTheTableAndHaveNoComments(t *testing.T) {
	t.Parallel()
	n := newNames(options{schema: "Own", Options: sqlstore.Options{Table: "keys"}})
	fields := reflect.ValueOf(newStatements(&n))
	for i := range fields.NumField() {
		name, field := fields.Type().Field(i).Name, fields.Field(i)
		if field.Kind() == reflect.Pointer {
			field = field.Elem().FieldByName("SQL")
		}
		text := field.String()
		if text == "" || strings.ContainsAny(text, "{}") || strings.Contains(text, "--") {
			t.Errorf("%s: %q", name, text)
		}
		writes := strings.Contains(text, "INSERT") || strings.Contains(text, "UPDATE") || strings.Contains(text, "DELETE")
		if writes && !strings.Contains(text, `"Own"."keys`) {
			t.Errorf("%s does not name the table: %q", name, text)
		}
	}
}

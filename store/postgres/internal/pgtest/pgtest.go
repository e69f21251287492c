// Package pgtest has helpers for tests of several rooms that run without a server.
package pgtest

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// T is a *testing.T. Published packages do not link the package testing.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// Refusing is a driver of database/sql that makes no connection, and notes when it was
// asked to.
type Refusing struct {
	Hangs bool // until the caller leaves

	mu    sync.Mutex
	asked []time.Time
}

// Connect implements driver.Connector.
func (r *Refusing) Connect(ctx context.Context) (driver.Conn, error) {
	r.mu.Lock()
	r.asked = append(r.asked, time.Now())
	r.mu.Unlock()
	if r.Hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("refused")
}

// Asked returns when connections were asked for.
func (r *Refusing) Asked() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.asked...)
}

// Driver implements driver.Connector.
func (r *Refusing) Driver() driver.Driver { return nil }

// ServerError is an error of a server whose messages are translated, with a detail that
// quotes a row.
func ServerError(severity, code string) error {
	return &pgconn.PgError{
		Severity: "FEHLER", SeverityUnlocalized: severity, Code: code,
		Message: "said", Detail: "Failing row contains (secret).",
	}
}

// CheckStatements fails t unless every text in statements, a struct of texts and of
// pointers to structs that begin with one, is there, has no comment and no placeholder,
// and names the table where it writes.
func CheckStatements(t T, statements any, table string) {
	t.Helper()
	fields := reflect.ValueOf(statements)
	for i := range fields.NumField() {
		name, field := fields.Type().Field(i).Name, fields.Field(i)
		if field.Kind() == reflect.Pointer {
			field = field.Elem().Field(0)
		}
		text := field.String()
		if text == "" || strings.ContainsAny(text, "{}") || strings.Contains(text, "--") {
			t.Errorf("%s: %q", name, text)
		}
		if (strings.Contains(text, "INSERT") || strings.Contains(text, "UPDATE") || strings.Contains(text, "DELETE")) && !strings.Contains(text, table) {
			t.Errorf("%s does not name the table: %q", name, text)
		}
	}
}

// FrameworkContext finds values by strings only, as the contexts of some frameworks do.
type FrameworkContext struct {
	context.Context //nolint:containedctx // it stands for a framework's

	Values map[string]any
}

// Value implements context.Context.
func (c FrameworkContext) Value(key any) any {
	if name, ok := key.(string); ok {
		return c.Values[name]
	}
	return nil
}

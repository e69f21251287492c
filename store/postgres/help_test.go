package reprisepg

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusing is a driver of database/sql that makes no connection, and notes when it was
// asked to.
type refusing struct {
	Hangs bool // until the caller leaves

	mu    sync.Mutex
	asked []time.Time
}

// Connect implements driver.Connector.
func (r *refusing) Connect(ctx context.Context) (driver.Conn, error) {
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
func (r *refusing) Asked() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.asked...)
}

// Driver implements driver.Connector.
func (r *refusing) Driver() driver.Driver { return nil }

// serverError is an error of a server whose messages are translated, with a detail that
// quotes a row.
func serverError(severity, code string) error {
	return &pgconn.PgError{
		Severity: "FEHLER", SeverityUnlocalized: severity, Code: code,
		Message: "said", Detail: "Failing row contains (secret).",
	}
}

package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/user"
	"syscall"
	"time"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

// audit is the log of operators' decisions: a line before a change, and one after it with
// its result.
type audit struct {
	log  *slog.Logger
	file *os.File
}

// openAudit opens the audit log. A change that cannot be logged is not made.
func (c *session) openAudit(name string) (*audit, error) {
	if name == "" {
		return newAudit(c.err.Raw()), nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the operator's own file
	if err != nil {
		return nil, usage("the audit log cannot be written, so nothing was changed: %w", err)
	}
	a := newAudit(f)
	a.file = f
	return a, nil
}

func newAudit(w io.Writer) *audit {
	return &audit{log: slog.New(slog.NewJSONHandler(jsonWriter{w}, nil))}
}

// jsonWriter makes JSON harmless to a terminal.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	_, err := j.w.Write(safe.JSON(p))
	return len(p), err
}

// line logs a step of a decision. A file has the line on its disk when line returns.
func (a *audit) line(ctx context.Context, step string, store *connect.Store, r *store.Record, d *decision, err error) error {
	attrs := []slog.Attr{
		slog.String("id", r.ID.String()), slog.String("store", store.Name), slog.String("state", r.State.String()), slog.String("label", r.Label),
		slog.Int("attempt", r.Attempt), slog.Uint64("fence", r.Fence),
	}
	if d.forget {
		attrs = append(attrs, slog.String("action", "forget"))
	} else {
		attrs = append(attrs, slog.String("action", "answer"), slog.Int("status", d.status),
			slog.Int("body_bytes", len(d.answer.response.Body)), slog.String("retention", d.retention.String()))
	}
	attrs = append(attrs, slog.String("reason", d.reason), slog.String("operator", operator()))
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", store.Redact(err.Error())))
	}
	entry := slog.NewRecord(time.Now(), level, "reprise: "+step, 0)
	entry.AddAttrs(attrs...)
	if err := a.log.Handler().Handle(ctx, entry); err != nil || a.file == nil {
		return err
	}
	if err := a.file.Sync(); !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) { // a pipe or a device has nothing to sync
		return err
	}
	return nil
}

func (a *audit) close() {
	if a.file != nil {
		_ = a.file.Close()
	}
}

// operator returns who runs the program, as far as the machine knows.
func operator() string {
	host, _ := os.Hostname()
	u, err := user.Current()
	if err != nil {
		return "unknown@" + host
	}
	return u.Username + "@" + host
}

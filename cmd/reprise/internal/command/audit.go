package command

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"os/user"
	"syscall"

	"github.com/reprise-go/reprise/core/operate"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

// openAudit opens the log of operators' decisions: a file, or standard error without a
// name.
func (c *session) openAudit(name string) (log slog.Handler, file io.Closer, err error) {
	w := &auditWriter{out: c.err.Raw(), redact: c.store.Redact}
	if name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the operator's own file
		if err != nil {
			return nil, nil, usage("%w: %w", operate.ErrNotAudited, err)
		}
		w.out, w.file = f, f
	}
	return slog.NewJSONHandler(w, nil).WithAttrs([]slog.Attr{slog.String("store", c.store.Name)}), w, nil
}

// auditWriter writes the lines of the log: harmless to a terminal and without passwords.
// A line that goes to a file is on its disk when Write returns.
type auditWriter struct {
	out    io.Writer
	file   *os.File // nil: standard error
	redact func(string) string
}

// Write implements [io.Writer].
func (a *auditWriter) Write(p []byte) (int, error) {
	if _, err := a.out.Write(safe.JSON([]byte(a.redact(string(p))))); err != nil || a.file == nil {
		return len(p), err
	}
	err := a.file.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) { // a pipe or a device has nothing to sync
		err = nil
	}
	return len(p), err
}

// Close implements [io.Closer].
func (a *auditWriter) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
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

package command

import (
	"io"
	"log/slog"
	"os"
	"sync"
)

// accessLog is a log file that can be reopened after another program has rotated it.
type accessLog struct {
	name string // empty: there is none; "-": out stays
	mu   sync.Mutex
	out  io.Writer
}

func (a *accessLog) log() *slog.Logger {
	if a.name == "" {
		return nil
	}
	return slog.New(slog.NewJSONHandler(a, nil))
}

// Write implements [io.Writer].
func (a *accessLog) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Write(p)
}

// reopen opens the file called name.
func (a *accessLog) reopen() error {
	if a.name == "" || a.name == "-" {
		return nil
	}
	f, err := os.OpenFile(a.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.close()
	a.out = f
	return nil
}

func (a *accessLog) close() {
	if f, ok := a.out.(*os.File); ok {
		_ = f.Close()
	}
}

package reprisesqlite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	o, err := Config{}.options()
	if err != nil || o.Table != "reprise_records" || o.PurgeEvery != time.Minute || o.Logger == nil {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestConfigIsRefusedWhereItCannotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config Config
		want   error
	}{
		"longest table":      {Config{Table: strings.Repeat("t", 50)}, nil},
		"table too long":     {Config{Table: strings.Repeat("t", 51)}, store.ErrInvalid},
		"table with a quote": {Config{Table: `a"b`}, store.ErrInvalid},
		"table with a digit": {Config{Table: "1a"}, store.ErrInvalid},
		"shortest TxTimeout": {Config{TxTimeout: time.Second}, nil},
		"TxTimeout too low":  {Config{TxTimeout: time.Second - 1}, store.ErrInvalid},
		"longest TxTimeout":  {Config{TxTimeout: 24 * time.Hour}, nil},
		"TxTimeout too high": {Config{TxTimeout: 24*time.Hour + 1}, store.ErrInvalid},
		"no purge":           {Config{PurgeEvery: -1}, nil},
		"fastest purge":      {Config{PurgeEvery: time.Second}, nil},
		"purge too fast":     {Config{PurgeEvery: time.Second - 1}, store.ErrInvalid},
	} {
		if _, err := c.config.options(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, err := Migrations(c.config); !errors.Is(err, c.want) {
			t.Errorf("%s: Migrations: %v, want %v", name, err, c.want)
		}
	}
}

func TestNewNeedsADatabase(t *testing.T) {
	t.Parallel()
	if _, err := New(nil, Config{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}

package repriseetcd

import "log/slog"

// DefaultPrefix is the default of Config.Prefix.
const DefaultPrefix = "reprise/"

const maxPrefix = 128

// Config configures a [Store]. The zero value is valid.
type Config struct {
	// Prefix starts every key. The default is "reprise/" ([DefaultPrefix]). It has at most
	// 128 bytes. Processes that share records need the same prefix.
	Prefix string

	// Logger receives the warnings of [Open]; nil means [slog.Default].
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	if len(c.Prefix) > maxPrefix {
		return invalid("Config.Prefix has %d bytes, want at most %d", len(c.Prefix), maxPrefix)
	}
	return nil
}

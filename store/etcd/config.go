package repriseetcd

import "log/slog"

// Config configures a [Store]. Prefix is required.
type Config struct {
	// Prefix starts every key, and names the service whose records these are, such as
	// "orders/". Empty is an error. Two services with one prefix would answer for each
	// other, and all processes of one service need the same. It has 1 to 128 visible
	// characters of US-ASCII and, as in Redis, no braces.
	Prefix string

	// Logger receives the warnings of [Open]; nil means [slog.Default].
	Logger *slog.Logger
}

package connect

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// SetURL sets the flag of the store whose URL it is, by its scheme. The error does not
// quote it.
func SetURL(fs *pflag.FlagSet, url string) error {
	scheme, _, _ := strings.Cut(url, "://")
	kind, _, _ := strings.Cut(scheme, "+")
	switch kind {
	case "redis", "rediss":
		return fs.Set("redis-url", url)
	case "postgres", "postgresql":
		return fs.Set("postgres-url", url)
	}
	return errors.New("--store is neither memory nor a URL that begins with redis, rediss, postgres or postgresql")
}

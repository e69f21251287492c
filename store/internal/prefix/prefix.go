// Package prefix says which prefixes a store takes for its keys.
package prefix

import (
	"errors"
	"fmt"
	"strings"
)

// Max is the length of the longest prefix in bytes.
const Max = 128

// Check returns an error that explains why a Config.Prefix is invalid. example is a good
// one.
func Check(prefix, example string) error {
	switch {
	case prefix == "":
		return fmt.Errorf("Config.Prefix is empty: it has no default, because it names the service whose records these are, such as %q", example)
	case len(prefix) > Max:
		return fmt.Errorf("Config.Prefix has %d bytes, want at most %d", len(prefix), Max)
	case strings.ContainsAny(prefix, "{}"):
		return errors.New("Config.Prefix contains a brace, which would keep all records of a Redis Cluster on one node")
	case strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("Config.Prefix is %q, want visible US-ASCII characters only", prefix)
	}
	return nil
}

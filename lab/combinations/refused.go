package combinations

import (
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// contradictions are the fields that promise two things at once. A policy with such a
// pair is refused when it is made, and no other is.
var contradictions = []struct {
	name string
	in   func(*protocol.Config) bool
}{
	{"FailOpen with AtMostOnce", func(c *protocol.Config) bool { return c.FailOpen && c.Preset == reprise.AtMostOnce }},
	{"FailOpen with Horizon", func(c *protocol.Config) bool { return c.FailOpen && c.Horizon > 0 }},
	{"a field of Seal without Secret", func(c *protocol.Config) bool {
		return c.Seal.Secret == protocol.Secret{} && (c.Seal.ClearHead || c.Seal.Strict || c.Seal.MaxAge > 0)
	}},
	{"Seal.MaxAge not longer than Retention", func(c *protocol.Config) bool {
		return c.Seal.MaxAge > 0 && c.Seal.MaxAge <= retentionOf(c)
	}},
	{"Offload.MaxBody above Offload.MaxSpool", func(c *protocol.Config) bool {
		return c.Offload.MaxSpool > 0 && c.Offload.MaxBody > c.Offload.MaxSpool
	}},
}

func retentionOf(c *protocol.Config) time.Duration {
	switch {
	case c.Retention > 0:
		return c.Retention
	case c.Engine.Retention > 0:
		return c.Engine.Retention
	default:
		return 24 * time.Hour
	}
}

// contradicts names the first pair of fields in a policy that promise two things at once.
func contradicts(c *protocol.Config) string {
	for _, pair := range contradictions {
		if pair.in(c) {
			return pair.name
		}
	}
	return ""
}

// judgeConstruction judges whether a policy was made, and returns an error for one that
// was refused.
func (w *world) judgeConstruction(c *protocol.Config, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	pair := contradicts(c)
	switch {
	case pair != "" && err == nil:
		w.find("construction: %s was accepted", pair)
	case pair == "" && err != nil:
		w.find("construction: refused for no reason: %v", err)
	case pair != "":
		w.tally["refused: "+pair]++
	}
	return err
}

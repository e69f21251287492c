package console

import (
	"net/http"
	"strconv"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// policyView is a policy of this process.
type policyView struct {
	Name    string
	Options [][2]string // name and value, as they run
	Shares  []share     // of its requests in this process
}

// share is how many requests of a policy had an outcome.
type share struct {
	Outcome reprise.Outcome
	Count   uint64
	Percent float64
}

// shares returns the outcomes that requests of a policy had, in all engines.
func (s *site) shares(label string) []share {
	counts := map[reprise.Outcome]uint64{}
	sum := uint64(0)
	for _, engine := range s.config.Engines {
		for outcome, n := range engine.Engine.Stats().Labels[label].Outcomes {
			counts[outcome] += n
			sum += n
		}
	}
	var list []share
	for _, outcome := range reprise.Outcomes() {
		if n := counts[outcome]; n > 0 {
			list = append(list, share{outcome, n, 100 * float64(n) / float64(sum)})
		}
	}
	return list
}

func (s *site) policies(w http.ResponseWriter, r *http.Request) {
	views := make([]policyView, 0, len(s.config.Guards))
	for _, guard := range s.config.Guards {
		c := guard.Config()
		views = append(views, policyView{Name: c.Label, Options: options(&c), Shares: s.shares(c.Label)})
	}
	s.show(w, r, http.StatusOK, "policies", page{Heading: "Policies", View: views})
}

// options describes a policy.
func options(c *protocol.Config) [][2]string {
	yes := func(on bool) string {
		if on {
			return "yes"
		}
		return "no"
	}
	or := func(unset bool, value, otherwise string) string {
		if unset {
			return otherwise
		}
		return value
	}
	mode := "compat"
	if c.KeyMode == protocol.Strict {
		mode = "strict"
	}
	oversize := "summary"
	if c.Oversize == protocol.Unavailable {
		oversize = "unavailable"
	}
	if c.Offload.Blobs != nil && !c.Offload.ReadOnly {
		oversize = "the blob store, up to " + byteCount(int(c.Offload.MaxBody)) + ", then " + oversize
	}
	return [][2]string{
		{"Preset", c.Preset.String()},
		{"Header", strings.Join(c.Key.Headers(), ", ")},
		{"Source of keys", c.Key.String()},
		{"Key mode", mode},
		{"Methods", strings.Join(c.Methods, ", ")},
		{"Key required", yes(c.Required)},
		{"Endpoint in the ID", or(c.Endpoint == "", c.Endpoint, "no")},
		{"Retention", or(c.Retention == 0, duration(c.Retention), "that of the engine")},
		{"Horizon", or(c.Horizon == 0, duration(c.Horizon)+" after the retention", "none")},
		{"Attempts", or(c.MaxAttempts == 0, "at most "+strconv.Itoa(c.MaxAttempts), "unlimited")},
		{"Duplicates wait", or(c.Wait == 0, duration(c.Wait), "no")},
		{"Request body", byteCount(c.Limits.RequestBody) + " at most"},
		{"Response body", byteCount(c.Limits.ResponseBody) + " at most, then " + oversize},
		{"Fingerprint fields", or(len(c.Fingerprint.Headers) == 0, strings.Join(c.Fingerprint.Headers, ", "), "none")},
		{"Not compared in JSON", or(len(c.Fingerprint.Omit) == 0, strings.Join(c.Fingerprint.Omit, ", "), "none")},
		{"Kept fields", or(c.Keep.Headers == nil, strings.Join(c.Keep.Headers, ", "), "all but those of a single response")},
		{"Records describe their requests", yes(c.Describe != nil)},
		{"Records are sealed", sealing(&c.Seal)},
		{"Runs unprotected while the store is down", yes(c.FailOpen)},
	}
}

// sealing describes how a policy seals.
func sealing(c *protocol.Sealing) string {
	id := c.Secret.ID()
	if id == "" {
		return "no"
	}
	text := "with the client's key and the secret " + id
	if c.ClearHead {
		text += "; status and fields are readable"
	}
	if c.Strict {
		text += "; what is not sealed is refused"
	}
	return text
}

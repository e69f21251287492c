package protocol

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fieldExpires says until when a response is replayed (Config.Expires). A handler may set
// it, so it is not a control field.
const fieldExpires = "Idempotency-Key-Expires"

// announcement is what a policy adds to the responses of handlers. The zero value adds
// nothing.
type announcement struct {
	expires   bool
	retention time.Duration
	link      Field // none if its name is empty
}

func newAnnouncement(cfg *Config, retention time.Duration) announcement {
	a := announcement{expires: cfg.Expires, retention: cmp.Or(cfg.Retention, retention)}
	if cfg.PolicyURL != "" {
		a.link = describedBy(cfg.PolicyURL)
	}
	return a
}

// fields returns what is added to a response whose own fields are these, and which is
// recorded at an instant. Only one that is kept has an expiry.
func (a *announcement) fields(own []Field, kept bool, at time.Time) []Field {
	if !a.expires && a.link.Name == "" {
		return nil
	}
	fields := make([]Field, 0, 2)
	if a.expires && kept && !slices.ContainsFunc(own, func(f Field) bool { return strings.EqualFold(f.Name, fieldExpires) }) {
		fields = append(fields, Field{Name: fieldExpires, Value: sfDate(at.Add(a.retention))})
	}
	if a.link.Name != "" && !(Header{fields: own}).has(a.link) {
		fields = append(fields, a.link)
	}
	return fields
}

// withoutExpiry returns fields for a response that is not known to be kept.
func withoutExpiry(fields []Field) []Field {
	if len(fields) > 0 && fields[0].Name == fieldExpires {
		return fields[1:]
	}
	return fields
}

// sfDate returns t as a Date of RFC 9651, section 3.3.7, rounded down to the second.
func sfDate(t time.Time) string { return "@" + strconv.FormatInt(t.Unix(), 10) }

// Announce returns the fields to set on a response that leaves before Finish, as a
// stream; a field with Add goes beside what the response has under its name. Its head has
// the given status, and the header that [Exchange.After] took. Call it once, before the
// head is sent: what it returns is kept with the response.
//
// Whether the response is kept is known only at its end. Announce goes by its status, by
// the preset, and by what the handler has decided so far.
func (x *Exchange) Announce(status int) []Field {
	if x.attempt.Unprotected() {
		x.announced = x.guard.announce.fields(x.scratch.committed, false, time.Time{})
		return x.announced
	}
	x.mu.Lock()
	decision := x.decision
	x.mu.Unlock()
	kept := resolve(returned, x.meaning(status), x.guard.cfg.Preset, decision, ByPreset) == keep
	x.announced = x.guard.announce.fields(x.scratch.committed, kept, x.recordedAt())
	return x.announced
}

// recordedAt returns the instant from which the expiry of the response counts. It is that
// of [Payload] where the handler called it: two payloads of one response are equal.
func (x *Exchange) recordedAt() time.Time {
	if !x.guard.announce.expires {
		return time.Time{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own.at.IsZero() {
		return time.Now()
	}
	return x.own.at
}

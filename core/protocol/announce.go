package protocol

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/record"
)

// announcement is the fields that a policy adds to the responses of handlers. The zero
// value adds none.
type announcement struct {
	expires   bool
	retention time.Duration
	link      Field // none if its name is empty
}

func newAnnouncement(cfg *Config, retention time.Duration) announcement {
	a := announcement{expires: cfg.Announce.Expires, retention: cmp.Or(cfg.Retention, retention)}
	if cfg.Announce.PolicyURL != "" {
		a.link = describedBy(cfg.Announce.PolicyURL)
	}
	return a
}

// fields returns the added fields of a response with these fields of its handler. A
// response that is recorded, at an instant, has an expiry.
func (a *announcement) fields(own []Field, recorded bool, at time.Time) []Field {
	if !a.expires && a.link.Name == "" {
		return nil
	}
	fields := make([]Field, 0, 2)
	if a.expires && recorded && !slices.ContainsFunc(own, func(f Field) bool { return !f.Remove && strings.EqualFold(f.Name, record.FieldExpires) }) {
		fields = append(fields, Field{Name: record.FieldExpires, Value: sfDate(at.Add(a.retention))})
	}
	if a.link.Name != "" && !(Header{fields: own}).has(a.link) {
		fields = append(fields, a.link)
	}
	return fields
}

// withoutExpiry returns fields for a response that is not known to be replayed.
func withoutExpiry(fields []Field) []Field {
	if len(fields) > 0 && fields[0].Name == record.FieldExpires {
		return fields[1:]
	}
	return fields
}

// sfDate returns t as a Date of RFC 9651, section 3.3.7, rounded down to the second.
func sfDate(t time.Time) string { return "@" + strconv.FormatInt(t.Unix(), 10) }

// Announce returns the fields to set on a response that leaves before Finish, as a
// stream; a field with Add goes beside the values that the response has under its name.
// Its header is that which [Exchange.After] took. There is no expiry among them: whether
// the response will be recorded is known only at its end. Its replays have one.
func (x *Exchange) Announce() []Field {
	return x.guard.announce.fields(x.scratch.committed, false, time.Time{})
}

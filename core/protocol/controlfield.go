package protocol

import "strings"

// The control fields. Everything that sets, removes or names one asks for
// [ControlFields].
const (
	fieldReplayed = "Idempotent-Replayed"
	fieldStatus   = "Idempotency-Status"
	fieldBody     = "Idempotency-Body"
	fieldExpires  = "Idempotency-Key-Expires"
)

// ControlFields has the names of the response fields in which a guard speaks to clients.
// Only Expires may come from a handler: the others are removed from its response.
type ControlFields struct {
	Replayed string // "true" on a replay
	Status   string // "unrecorded" or "unprotected": a retry may run again
	Body     string // "omitted" on a replay whose body was not kept
	Expires  string // until when a response is replayed, see Config.Announce.Expires
}

// ControlFields returns the names that a guard of this policy uses.
func (c *Config) ControlFields() ControlFields {
	return ControlFields{Replayed: fieldReplayed, Status: fieldStatus, Body: fieldBody, Expires: fieldExpires}
}

// ControlFields returns the names of the guard's control fields.
func (g *Guard) ControlFields() ControlFields { return g.cfg.ControlFields() }

// IsControlField reports whether name, in any case, is a field that only the protocol
// sets. An adapter whose framework holds the response in memory removes such fields from
// the handler's header (R11); a [Recorder] removes them itself.
func (x *Exchange) IsControlField(name string) bool { return x.guard.fields.control.reserve(name) }

// marks are the control fields with their values. The responses of a guard share them,
// and they are never modified.
type marks struct {
	replayed                         []Field
	unrecorded, unprotected, omitted Field
}

func newMarks(names ControlFields) marks {
	return marks{
		replayed:    []Field{{Name: names.Replayed, Value: "true"}},
		unrecorded:  Field{Name: names.Status, Value: "unrecorded"},
		unprotected: Field{Name: names.Status, Value: "unprotected"},
		omitted:     Field{Name: names.Body, Value: "omitted"},
	}
}

// reserve reports whether only the protocol sets the field called name, in any case. The
// zero value reserves the names that every guard does.
func (f *ControlFields) reserve(name string) bool {
	return strings.EqualFold(name, fieldReplayed) || strings.EqualFold(name, fieldStatus) || strings.EqualFold(name, fieldBody)
}

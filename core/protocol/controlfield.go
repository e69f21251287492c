package protocol

import "github.com/reprise-go/reprise/core/protocol/internal/record"

// ControlFields has the names of the response fields in which a guard speaks to clients.
// Everything that sets, removes or names one asks for it.
// Only Expires may come from a handler: the others are removed from what it wrote.
type ControlFields struct {
	Replayed string // "true" on a replay
	Status   string // "unrecorded" or "unprotected": a retry may run again
	Body     string // "omitted" on a replay whose body was not kept
	Expires  string // until when a response is replayed, see Config.Expires
}

// ControlFields returns the names that a guard of this policy uses.
func (c *Config) ControlFields() ControlFields {
	return ControlFields{Replayed: record.FieldReplayed, Status: record.FieldStatus, Body: record.FieldBody, Expires: record.FieldExpires}
}

// ControlFields returns the names of the guard's control fields.
func (g *Guard) ControlFields() ControlFields { return g.cfg.ControlFields() }

// Tidy returns the value with which a field that the handler set may be sent: without the
// bytes that would end its line. keep is false for a field that only the protocol sets
// (R11). An adapter whose framework holds the response in memory, and checks neither,
// sends what Tidy returns; a [Recorder] does so itself.
func (x *Exchange) Tidy(name, value string) (tidied string, keep bool) {
	return cleanValue(value), !x.IsControlField(name)
}

// IsControlField reports whether name, in any case, is a field that only the protocol
// sets. An adapter whose framework holds the response in memory removes such fields from
// what the handler set (R11); a [Recorder] removes them itself.
func (x *Exchange) IsControlField(name string) bool { return x.guard.fields.control.reserve(name) }

// marks are the control fields with their values. The responses of a guard share them,
// and nothing modifies them.
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

// reserve reports whether only the protocol sets the field called name, in any case. With
// the zero value it is what every guard reserves.
func (f *ControlFields) reserve(name string) bool {
	return record.IsControlField(name)
}

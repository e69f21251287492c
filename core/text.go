package reprise

import "strconv"

// String returns the outcome as it appears in logs.
func (o Outcome) String() string { return name(outcomeNames[:], int(o)) }

// String returns the status as it appears in logs.
func (s RenewStatus) String() string { return name(renewNames[:], int(s)) }

// String returns the severity as it appears in logs.
func (s Severity) String() string { return name(severityNames[:], int(s)) }

var (
	outcomeNames  = [...]string{Claimed: "claimed", InProgress: "in-progress", Completed: "completed", Mismatch: "mismatch", Lapsed: "lapsed"}
	renewNames    = [...]string{Renewed: "renewed", RenewBusy: "busy", RenewCompleted: "completed", RenewLost: "lost"}
	severityNames = [...]string{Warning: "warning", Unsafe: "unsafe"}
)

// name returns names[i], and a readable text for a value that is not in the table: a log
// line must not panic.
func name(names []string, i int) string {
	if i < 1 || i >= len(names) {
		return "invalid(" + strconv.Itoa(i) + ")"
	}
	return names[i]
}

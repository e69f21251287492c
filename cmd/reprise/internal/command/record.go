package command

import (
	"errors"
	"math"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// recordJSON is a record in the output for programs.
type recordJSON struct {
	ID           string     `json:"id"`
	State        string     `json:"state"`
	Needs        string     `json:"needs,omitempty"` // person or retry
	Label        string     `json:"label"`
	Description  string     `json:"description,omitempty"`
	Attempt      int        `json:"attempt"`
	Fence        uint64     `json:"fence"`
	ClaimedAt    *time.Time `json:"claimed_at,omitempty"`
	CompletedAt  *time.Time `json:"completed_at,omitempty"`
	Resolved     bool       `json:"resolved"`
	Preset       string     `json:"preset"`
	Retention    float64    `json:"retention_seconds"`
	Horizon      float64    `json:"horizon_seconds"`
	LeaseSeconds float64    `json:"lease_seconds"`
	ValidSeconds float64    `json:"valid_seconds"`
	Size         int        `json:"size"`
	Reason       string     `json:"reason,omitempty"`
}

func newRecordJSON(r *store.Record) recordJSON {
	return recordJSON{
		Needs: operate.NeedOf(r).String(), ID: r.ID.String(), State: r.State.String(), Label: r.Label, Description: r.Description, Attempt: r.Attempt, Fence: r.Fence,
		ClaimedAt: instant(r.ClaimedAt), CompletedAt: instant(r.CompletedAt), Resolved: r.Resolved,
		Preset: presetOf(r).String(), Retention: seconds(r.Retention), Horizon: seconds(r.Horizon),
		LeaseSeconds: seconds(r.Lease), ValidSeconds: seconds(r.Validity), Size: r.Size, Reason: r.Reason,
	}
}

// presetOf returns the preset that a record was claimed with.
func presetOf(r *store.Record) reprise.Preset {
	if r.AtMostOnce {
		return reprise.AtMostOnce
	}
	return reprise.Recoverable
}

// promise describes how long a record's policy has its response replayed and remembered.
func promise(r *store.Record) ui.Piece {
	text := presetOf(r).String() + ", replayed for " + ui.Duration(r.Retention)
	if r.Horizon > 0 {
		text += ", then remembered for " + ui.Duration(r.Horizon)
	}
	return ui.Piece{Text: text}
}

// instant returns nil for an instant that is not known.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// seconds returns a duration in seconds, to the millisecond.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// failureKept returns the failure that every retry of a completed record gets. It is
// empty if they get none, or if the record is of a listing, which has no answers.
func failureKept(r *store.Record) string {
	switch a := answerOf(r); {
	case a != nil && errors.Is(a.Err, store.ErrCorrupt):
		return " (unreadable)"
	case a != nil && a.Failed:
		return " (a failure)"
	default:
		return ""
	}
}

// stateOf paints the state of a record.
func stateOf(r *store.Record) ui.Piece {
	style := ui.Plain
	text := r.State.String()
	switch r.State {
	case store.StateLapsed, store.StateUnreadable, store.StateUnknown:
		if style = ui.Bad; operate.NeedOf(r) == operate.NeedsRetry {
			style = ui.Warn
		}
	case store.StateRunning:
		style = ui.Warn
	case store.StateCompleted:
		style = ui.Good
		if failure := failureKept(r); failure != "" {
			style, text = ui.Bad, text+failure
		}
	case store.StateExpired:
	}
	if r.Resolved {
		text += " (resolved)"
	}
	return ui.Piece{Style: style, Text: text}
}

// orNone is a text, or a dash for an empty one.
func orNone(text string) ui.Piece {
	if text == "" {
		return ui.Piece{Style: ui.Faint, Text: "-"}
	}
	return ui.Piece{Text: text}
}

// when writes an instant of the store's clock with its distance from the clock of this
// machine.
func when(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	text := t.UTC().Format("2006-01-02 15:04:05.000 MST")
	if age := now.Sub(t); age >= 0 {
		return text + ", " + ui.Duration(age) + " ago"
	}
	return text
}

// age returns how long ago the last attempt claimed the record, and a dash where that is
// not known.
func age(r *store.Record, now time.Time) ui.Piece {
	if r.ClaimedAt.IsZero() {
		return orNone("")
	}
	return ui.Piece{Text: ui.Duration(max(now.Sub(r.ClaimedAt), 0))}
}

// lease writes the rest of the lease, or when it ended, or why the attempt gave it up.
func lease(r *store.Record) ui.Piece {
	switch {
	case r.State == store.StateRunning:
		return ui.Piece{Text: ui.Duration(r.Lease) + " left"}
	case r.State == store.StateLapsed:
		return ui.Piece{Text: "over for " + ui.Duration(-r.Lease)}
	default:
		return orNone(r.Reason)
	}
}

// validity writes the rest of the retention.
func validity(r *store.Record) ui.Piece {
	if r.Validity <= 0 {
		return orNone("")
	}
	return ui.Piece{Text: ui.Duration(r.Validity)}
}

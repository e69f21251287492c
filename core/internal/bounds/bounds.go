// Package bounds checks the durations and texts that engines and stores share.
package bounds

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrInvalid is store.ErrInvalid.
var ErrInvalid = errors.New("reprise: invalid argument")

// The constants of the same names in package store.
const (
	MinDuration = time.Millisecond
	MaxDuration = 10 * 365 * 24 * time.Hour
	MaxLabel    = 32
	MaxReason   = 255

	MaxDescription = 255
)

// Text refuses a text that is not 0 to most bytes of printable ASCII.
func Text(field, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%w: %s has %d bytes, want %d at most", ErrInvalid, field, len(text), most)
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return fmt.Errorf("%w: %s has the byte %#x, want printable ASCII", ErrInvalid, field, text[i])
		}
	}
	return nil
}

// cutMark is the end of a text that was cut.
const cutMark = "..."

// Printable returns a text as records keep it: each character that is not printable ASCII
// becomes a "?", and a text of more than most bytes is cut and ends in "...".
func Printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		text = text[:most-len(cutMark)] + cutMark
	}
	return text
}

// Duration refuses a duration that is shorter than MinDuration or longer than
// MaxDuration.
func Duration(field string, d time.Duration) error {
	if !valid(d) {
		return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalid, field, d, MinDuration, MaxDuration)
	}
	return nil
}

// Remembered refuses the fields Retention and Horizon of owner if one of them, or their
// sum, is no valid duration. The horizon may be 0.
func Remembered(owner string, retention, horizon time.Duration) error {
	switch {
	case !valid(retention):
		return Duration(owner+".Retention", retention)
	case horizon == 0:
		return nil
	case !valid(horizon):
		return Duration(owner+".Horizon", horizon)
	case !valid(retention + horizon):
		return Duration("the sum of "+owner+".Retention and "+owner+".Horizon", retention+horizon)
	}
	return nil
}

func valid(d time.Duration) bool { return d >= MinDuration && d <= MaxDuration }

package sqlstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// Findings collects the findings of a check.
type Findings []store.Finding

// Add adds a finding if it was noticed.
func (l *Findings) Add(noticed bool, code string, severity store.Severity, format string, args ...any) {
	if noticed {
		*l = append(*l, store.Finding{Code: code, Severity: severity, Detail: fmt.Sprintf(format, args...)})
	}
}

// AtLeast reports whether a version such as 10.11.19-MariaDB or 3.46.1 is major.minor or
// newer.
func AtLeast(version string, major, minor int) bool {
	parts := strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
	if len(parts) < 2 {
		return false
	}
	x, errX := strconv.Atoi(parts[0])
	y, errY := strconv.Atoi(parts[1])
	return errX == nil && errY == nil && (x > major || x == major && y >= minor)
}

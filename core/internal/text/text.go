// Package text names the values of enums for logs.
package text

import "strconv"

// Name returns names[i], and a readable text for a value that is not in the table: a log
// line must not panic.
func Name(names []string, i int) string {
	if i < 1 || i >= len(names) {
		return "invalid(" + strconv.Itoa(i) + ")"
	}
	return names[i]
}

package ui

import (
	"fmt"
	"strconv"
	"time"
)

// Duration writes a duration as a person would, with two units at most: 350ms, 12s, 5m
// 3s, 2h 10m, 3d 4h.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	const day = 24 * time.Hour
	two := func(big, small time.Duration, bigUnit, smallUnit string) string {
		text := strconv.FormatInt(int64(d/big), 10) + bigUnit
		if rest := d % big / small; rest > 0 {
			text += " " + strconv.FormatInt(int64(rest), 10) + smallUnit
		}
		return text
	}
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "m")
	default:
		return two(day, time.Hour, "d", "h")
	}
}

// Bytes writes a size as a person would.
func Bytes(n int64) string {
	const kilo = 1024
	switch {
	case n < kilo:
		return strconv.FormatInt(n, 10) + " B"
	case n < kilo*kilo:
		return fmt.Sprintf("%.1f KiB", float64(n)/kilo)
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/kilo/kilo)
	}
}

// Count writes a number with its thousands apart.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Noun writes a number with its noun.
func Noun(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

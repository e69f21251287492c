package faultstore

import reprise "github.com/reprise-go/reprise/core"

// The abilities that a store may have, as bits.
const (
	binder = 1 << iota
	waiter
	purger
	checker
	inspector
)

// withAbilities returns s with the abilities of inner. An engine finds abilities by type assertion, so each combination needs a
// type of its own: all 32 are spelled out, in the order of the bits.
func withAbilities(s *scripted, inner reprise.Store) reprise.Store {
	b, hasB := inner.(reprise.ContextBinder)
	w, hasW := inner.(reprise.Waiter)
	p, hasP := inner.(reprise.Purger)
	c, hasC := inner.(reprise.Checker)
	i, hasI := inner.(reprise.Inspector)

	type (
		B = reprise.ContextBinder
		W = reprise.Waiter
		P = reprise.Purger
		C = reprise.Checker
		I = reprise.Inspector
	)
	switch bit(hasB, binder) | bit(hasW, waiter) | bit(hasP, purger) | bit(hasC, checker) | bit(hasI, inspector) {
	case binder:
		return struct {
			*scripted
			B
		}{s, b}
	case waiter:
		return struct {
			*scripted
			W
		}{s, w}
	case binder | waiter:
		return struct {
			*scripted
			B
			W
		}{s, b, w}
	case purger:
		return struct {
			*scripted
			P
		}{s, p}
	case binder | purger:
		return struct {
			*scripted
			B
			P
		}{s, b, p}
	case waiter | purger:
		return struct {
			*scripted
			W
			P
		}{s, w, p}
	case binder | waiter | purger:
		return struct {
			*scripted
			B
			W
			P
		}{s, b, w, p}
	case checker:
		return struct {
			*scripted
			C
		}{s, c}
	case binder | checker:
		return struct {
			*scripted
			B
			C
		}{s, b, c}
	case waiter | checker:
		return struct {
			*scripted
			W
			C
		}{s, w, c}
	case binder | waiter | checker:
		return struct {
			*scripted
			B
			W
			C
		}{s, b, w, c}
	case purger | checker:
		return struct {
			*scripted
			P
			C
		}{s, p, c}
	case binder | purger | checker:
		return struct {
			*scripted
			B
			P
			C
		}{s, b, p, c}
	case waiter | purger | checker:
		return struct {
			*scripted
			W
			P
			C
		}{s, w, p, c}
	case binder | waiter | purger | checker:
		return struct {
			*scripted
			B
			W
			P
			C
		}{s, b, w, p, c}
	case inspector:
		return struct {
			*scripted
			I
		}{s, i}
	case binder | inspector:
		return struct {
			*scripted
			B
			I
		}{s, b, i}
	case waiter | inspector:
		return struct {
			*scripted
			W
			I
		}{s, w, i}
	case binder | waiter | inspector:
		return struct {
			*scripted
			B
			W
			I
		}{s, b, w, i}
	case purger | inspector:
		return struct {
			*scripted
			P
			I
		}{s, p, i}
	case binder | purger | inspector:
		return struct {
			*scripted
			B
			P
			I
		}{s, b, p, i}
	case waiter | purger | inspector:
		return struct {
			*scripted
			W
			P
			I
		}{s, w, p, i}
	case binder | waiter | purger | inspector:
		return struct {
			*scripted
			B
			W
			P
			I
		}{s, b, w, p, i}
	case checker | inspector:
		return struct {
			*scripted
			C
			I
		}{s, c, i}
	case binder | checker | inspector:
		return struct {
			*scripted
			B
			C
			I
		}{s, b, c, i}
	case waiter | checker | inspector:
		return struct {
			*scripted
			W
			C
			I
		}{s, w, c, i}
	case binder | waiter | checker | inspector:
		return struct {
			*scripted
			B
			W
			C
			I
		}{s, b, w, c, i}
	case purger | checker | inspector:
		return struct {
			*scripted
			P
			C
			I
		}{s, p, c, i}
	case binder | purger | checker | inspector:
		return struct {
			*scripted
			B
			P
			C
			I
		}{s, b, p, c, i}
	case waiter | purger | checker | inspector:
		return struct {
			*scripted
			W
			P
			C
			I
		}{s, w, p, c, i}
	case binder | waiter | purger | checker | inspector:
		return struct {
			*scripted
			B
			W
			P
			C
			I
		}{s, b, w, p, c, i}
	default:
		return s
	}
}

func bit(has bool, b int) int {
	if has {
		return b
	}
	return 0
}

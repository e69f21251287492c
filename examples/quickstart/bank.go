package main

import (
	"context"
	"errors"
	"sync"
)

// bank is the bank of the demo, whose steps control it. Like real banks, it charges once
// for each key.
type bank struct {
	mu      sync.Mutex
	charged map[string]int // how often each key was presented
	failed  int            // how many charges failed
	failing bool           // the next charge fails
	held    *hold          // nil: charges are not held
}

// hold makes charges wait.
type hold struct {
	entered  chan struct{} // closed when the first one waits
	released chan struct{} // closed to let the charges go on
	enter    sync.Once
}

var errBankAway = errors.New("the bank is down")

// charge is a chargeFunc.
func (b *bank) charge(ctx context.Context, key string, _ int) error {
	b.mu.Lock()
	b.charged[key]++
	failing, held := b.failing, b.held
	b.failing = false
	if failing {
		b.failed++
	}
	b.mu.Unlock()
	if failing {
		return errBankAway
	}
	if held == nil {
		return nil
	}
	held.enter.Do(func() { close(held.entered) })
	select {
	case <-held.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold makes charges wait until release is called.
func (b *bank) hold() (release func()) {
	h := &hold{entered: make(chan struct{}), released: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = h
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.held = nil
		close(h.released)
	})
}

// entered waits until a charge is held.
func (b *bank) entered(ctx context.Context) error {
	b.mu.Lock()
	h := b.held
	b.mu.Unlock()
	select {
	case <-h.entered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail makes the next charge fail.
func (b *bank) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing = true
}

// total returns how many charges succeeded, or are held.
func (b *bank) total() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := -b.failed
	for _, times := range b.charged {
		n += times
	}
	return n
}

// repeated returns how many keys were presented more than once.
func (b *bank) repeated() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, times := range b.charged {
		if times > 1 {
			n++
		}
	}
	return n
}

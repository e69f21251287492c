// Package parallel runs the parts of a call in goroutines.
package parallel

import "sync"

// Group runs the parts of one call. A panic of a part, for example of a database driver,
// reaches the caller instead of ending the process. The zero value is ready to use.
type Group struct {
	parts    sync.WaitGroup
	mu       sync.Mutex
	panicked any // the value of the first panic
}

// Go calls f in a goroutine.
func (g *Group) Go(f func()) {
	g.parts.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.panicked == nil {
					g.panicked = p
				}
			}
		}()
		f()
	})
}

// Wait waits for all parts. If one panicked, Wait panics with the same value.
func (g *Group) Wait() {
	g.parts.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
}

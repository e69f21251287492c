package servers

import "time"

// mayPass waits while the proxy stalls, and reports whether a piece may pass on. One that
// may not is counted as lost, unless the link was ended.
func (l *link) mayPass() bool {
	p := l.proxy
	for {
		p.mu.Lock()
		mode, changed := p.mode, p.changed
		discard := l.silent || mode == Swallow
		if discard && l.ctx.Err() == nil {
			l.torn = true
			p.counts.Lost++
		}
		p.mu.Unlock()
		if discard || l.ctx.Err() != nil {
			return false
		}
		if mode == Forward {
			return true
		}
		p.held()
		select {
		case <-changed:
		case <-l.ctx.Done():
		}
	}
}

// awaitForward waits until news of one side, such as its end, may reach the other. It is
// false when the link was ended instead.
func (l *link) awaitForward() bool {
	p := l.proxy
	for {
		p.mu.Lock()
		changed := p.changed
		pass := p.mode == Forward && !l.torn && !l.silent
		l.torn = l.torn || p.mode == Swallow
		p.mu.Unlock()
		if l.ctx.Err() != nil {
			return false
		}
		if pass {
			return true
		}
		p.held()
		select {
		case <-changed:
		case <-l.ctx.Done():
		}
	}
}

// held counts something that is kept back.
func (p *Proxy) held() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Held++
}

// pause counts that something is kept back, and waits for d.
func (l *link) pause(d time.Duration) {
	if d > 0 {
		l.proxy.held()
		l.wait(d)
	}
}

// wait waits for d, or until the link is ended.
func (l *link) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

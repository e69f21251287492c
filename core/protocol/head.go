package protocol

// headSize bounds the start of a body that Config.Keep.Decide sees, in bytes.
const headSize = 4 << 10

// keepHead keeps the start of a body that leaves the memory. p is its next part.
func (x *Exchange) keepHead(p []byte) {
	s := x.scratch
	if x.guard.cfg.Keep.Decide != nil && len(s.head) < headSize {
		s.head = append(s.head, p[:min(len(p), headSize-len(s.head))]...)
	}
}

// head returns the start of the body, which is in c unless it has left the memory.
func (x *Exchange) head(c *Captured) []byte {
	body := c.Body
	if kept := x.scratch.head; len(kept) > 0 {
		body = kept
	}
	n := min(len(body), headSize)
	return body[:n:n]
}

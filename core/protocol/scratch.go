package protocol

import (
	"sync"

	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// stored is a response as a record keeps it.
type stored = record.Response[Field]

// scratch is the memory of an exchange, reused by later ones.
type scratch struct {
	request   []byte    // the request's body
	response  []byte    // the response's body
	head      []byte    // the start of one that has left the memory, for Config.Keep.Decide
	payload   []byte    // its encoded form
	outer     []Field   // the header when the handler started
	places    []*string // where the outer values are, see appendPlaces
	set       []string  // the outer fields that the handler set, maybe to the same values
	committed []Field   // the header when the handler wrote it
	changed   []Field   // the difference of the two
	kept      []Field   // and the kept ones of them
	trailers  []Field   // the handler's fields to send after the body
	encoded   []byte    // the response's encoded form, before it is sealed
	key       []byte    // the client's key, of a request that runs

	fingerprint store.Fingerprint // of the request with that response
}

// decode reads the payload of a record of the operation that it may be sealed for.
func (g *Guard) decode(payload []byte, who *record.SealedFor) (stored, error) {
	encoded, err := g.cfg.Seal.open(payload, who)
	if err != nil {
		return stored{}, err
	}
	return record.Decode[Field](encoded)
}

// largestScratch is the largest buffer that is reused. The collector frees larger ones,
// so that a few large bodies do not hold memory for ever.
const largestScratch = 256 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// free returns the memory to the pool.
func (s *scratch) free() {
	*s = scratch{
		request: again(s.request), response: again(s.response), head: again(s.head), payload: again(s.payload),
		outer: emptied(s.outer), committed: emptied(s.committed), changed: emptied(s.changed), kept: emptied(s.kept),
		places: emptied(s.places), set: emptied(s.set),
		trailers: emptied(s.trailers), encoded: wiped(s.encoded), key: wiped(s.key),
	}
	scratches.Put(s)
}

// again returns the memory of b for reuse, or nil if there is too much of it.
func again(b []byte) []byte {
	if cap(b) > largestScratch {
		return nil
	}
	return b[:0]
}

// emptied returns the memory of list without its references.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// wiped returns the memory of b for reuse without its content, or nil if it is too large.
func wiped(b []byte) []byte {
	clear(b[:cap(b)])
	return again(b)
}

// headSize bounds the start of a body that Config.Keep.Decide sees, in bytes.
const headSize = 4 << 10

// keepHead keeps the start of a body that leaves the memory. p is its next part.
func (x *Exchange) keepHead(p []byte) {
	s := x.scratch
	if x.guard.cfg.Keep.Decide != nil && len(s.head) < headSize {
		s.head = append(s.head, p[:min(len(p), headSize-len(s.head))]...)
	}
}

// head returns the start of a body, which is in body unless it has left the memory.
func (x *Exchange) head(body []byte) []byte {
	if kept := x.scratch.head; len(kept) > 0 {
		body = kept
	}
	n := min(len(body), headSize)
	return body[:n:n]
}

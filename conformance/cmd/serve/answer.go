package serve

import (
	"context"

	"github.com/reprise-go/reprise/conformance"
)

// piece is a part of a body.
type piece struct {
	delayMS int                // before it is written
	late    []conformance.Pair // field lines that are added before it is written
	bytes   []byte
}

// answer writes the response of a program, its fields being set.
func answer(ctx context.Context, c call, p *conformance.Program, content []byte) {
	if len(p.Trailers) > 0 {
		names := make([]string, len(p.Trailers))
		for i, t := range p.Trailers {
			names[i] = t[0]
		}
		c.announce(names)
	}
	if p.Status != 0 {
		c.setStatus(p.Status)
	}
	body := pieces(p, content)
	if len(p.Chunks) > 0 {
		c.stream(func(out output) conformance.Behaviour {
			for _, part := range body {
				if !pause(ctx, part.delayMS, p.IgnoreCtx) {
					return conformance.Aborts
				}
				part.writeTo(out, p.Write)
				out.flush()
			}
			return finish(out, p)
		})
		return
	}
	for _, part := range body {
		part.writeTo(c, p.Write)
	}
	switch finish(c, p) {
	case conformance.Panics:
		panic(panicValue)
	case conformance.Aborts:
		c.abort()
	default:
	}
}

func (p *piece) writeTo(out output, how conformance.WriteMode) {
	addHeaders(out, p.late)
	out.write(p.bytes, how)
}

// pieces lists what to write: all of it, or the first half for a program that does not get further.
func pieces(p *conformance.Program, content []byte) []piece {
	var list []piece
	if len(content) > 0 {
		list = append(list, piece{bytes: content})
	}
	for _, c := range p.Chunks {
		list = append(list, piece{delayMS: c.DelayMS, bytes: []byte(c.Body)})
	}
	if p.Behaviour == conformance.Panics || p.Behaviour == conformance.Aborts {
		if len(list) == 1 {
			list[0].bytes = list[0].bytes[:(len(list[0].bytes)+1)/2]
		}
		list = list[:(len(list)+1)/2]
	}
	if len(p.HeadersAfter) == 0 || len(list) == 0 || len(list[0].bytes) == 0 {
		return list
	}
	first, rest := list[0], piece{late: p.HeadersAfter, bytes: list[0].bytes[1:]}
	first.bytes = first.bytes[:1]
	return append([]piece{first, rest}, list[1:]...)
}

// finish ends the body and says how the response ends.
func finish(out output, p *conformance.Program) conformance.Behaviour {
	if p.Behaviour == conformance.Panics || p.Behaviour == conformance.Aborts {
		return p.Behaviour
	}
	for _, t := range p.Trailers {
		out.setTrailer(t[0], t[1])
	}
	return conformance.Returns
}

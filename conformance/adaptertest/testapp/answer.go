package testapp

import (
	"context"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// piece is a part of a body.
type piece struct {
	delayMS int                // before it is written
	late    []adaptertest.Pair // field lines that are added before it is written
	bytes   []byte
}

// answer writes the response of a program, its fields being set.
func answer(ctx context.Context, c Call, p *adaptertest.Program, content []byte) {
	if len(p.Trailers) > 0 {
		names := make([]string, len(p.Trailers))
		for i, t := range p.Trailers {
			names[i] = t[0]
		}
		c.Announce(names)
	}
	if p.Status != 0 {
		c.SetStatus(p.Status)
	}
	body := pieces(p, content)
	if len(p.Chunks) > 0 {
		c.Stream(func(out Output) adaptertest.Behaviour {
			for _, part := range body {
				if !pause(ctx, part.delayMS, p.IgnoreCtx) {
					return adaptertest.Aborts
				}
				part.writeTo(out, p.Write)
				out.Flush()
			}
			return finish(out, p)
		})
		return
	}
	for _, part := range body {
		part.writeTo(c, p.Write)
	}
	switch finish(c, p) {
	case adaptertest.Panics:
		panic(PanicValue)
	case adaptertest.Aborts:
		c.Abort()
	default:
	}
}

func (p *piece) writeTo(out Output, how adaptertest.WriteMode) {
	AddHeaders(out, p.late)
	out.Write(p.bytes, how)
}

// pieces returns the pieces to write: all, or the first half for a program that stops
// midway.
func pieces(p *adaptertest.Program, content []byte) []piece {
	var list []piece
	if len(content) > 0 {
		list = append(list, piece{bytes: content})
	}
	for _, c := range p.Chunks {
		list = append(list, piece{delayMS: c.DelayMS, bytes: []byte(c.Body)})
	}
	if p.Behaviour == adaptertest.Panics || p.Behaviour == adaptertest.Aborts {
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
func finish(out Output, p *adaptertest.Program) adaptertest.Behaviour {
	if p.Behaviour == adaptertest.Panics || p.Behaviour == adaptertest.Aborts {
		return p.Behaviour
	}
	for _, t := range p.Trailers {
		out.SetTrailer(t[0], t[1])
	}
	return adaptertest.Returns
}

package adaptertest

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// check reports the first thing that cannot be done, or not together with another.
func (p *Program) check() error {
	bodies := 0
	for _, there := range []bool{p.Body != "", len(p.BodyBase64) > 0, p.BodySize != 0, p.Echo} {
		if there {
			bodies++
		}
	}
	ownAnswer := p.Behaviour == Fails || p.Behaviour == Hijacks
	switch {
	case bodies > 1:
		return errors.New("more than one of body, body_base64, body_size and echo")
	case p.BodySize < 0 || p.BodySize > MaxBodySize:
		return fmt.Errorf("body_size is %d, want 0 to %d", p.BodySize, MaxBodySize)
	case p.Status != 0 && (p.Status < 200 || p.Status > 999):
		return fmt.Errorf("status is %d, want 200 to 999", p.Status)
	case !slices.Contains([]WriteMode{"", WriteBytes, WriteString, WriteCopy}, p.Write):
		return fmt.Errorf("write is %q", p.Write)
	case !slices.Contains([]Behaviour{"", Returns, Panics, Aborts, Fails, Hijacks}, p.Behaviour):
		return fmt.Errorf("behaviour is %q", p.Behaviour)
	case p.Keep && p.Release:
		return errors.New("both keep and release")
	case p.Unknown != "" && (p.Keep || p.Release):
		return errors.New("unknown beside keep or release")
	case ownAnswer && (p.Echo || len(p.Chunks) > 0 || len(p.Trailers) > 0 || len(p.HeadersAfter) > 0 || p.Write != ""):
		return fmt.Errorf("behaviour %s makes its own answer, without echo, chunks, trailers, headers_after and write", p.Behaviour)
	case p.Behaviour == Fails && bodies > 0:
		return errors.New("behaviour error leaves the body to the framework")
	case p.StatusOnly && (p.Status == 0 || bodies > 0 || len(p.Chunks) > 0 || len(p.Trailers) > 0 || len(p.HeadersAfter) > 0 || p.Behaviour != "" && p.Behaviour != Returns):
		return errors.New("status_only needs a status, and nothing to write or to fail with")
	case p.Behaviour == Hijacks && p.Status != 0 && p.Status != 200:
		return errors.New("behaviour hijack answers 200")
	}
	return errors.Join(p.checkDelays(), p.checkNames())
}

func (p *Program) checkDelays() error {
	delays := []int{p.DelayMS}
	for _, c := range p.Chunks {
		delays = append(delays, c.DelayMS)
	}
	for _, ms := range delays {
		if ms < 0 || ms > int(MaxDelay/time.Millisecond) {
			return fmt.Errorf("delay_ms is %d, want 0 to %d", ms, MaxDelay/time.Millisecond)
		}
	}
	return nil
}

func (p *Program) checkNames() error {
	lists := [][]Pair{p.Headers, p.HeadersAfter, p.Trailers}
	for _, i := range p.Informational {
		if i.Status < 100 || i.Status > 199 || i.Status == 101 {
			return fmt.Errorf("informational status is %d, want 100 to 199 and not 101", i.Status)
		}
		lists = append(lists, i.Headers)
	}
	for _, pair := range slices.Concat(lists...) {
		if pair[0] == "" {
			return errors.New("a header or trailer without a name")
		}
	}
	return nil
}

package judge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// Facts are the abilities of the endpoint, learnt before the first case.
type Facts struct {
	have   need
	quoted bool         // keys are sent in quotes
	mark   string       // the field that marks runs; empty: the body differs from run to run
	call   wire.Call    // of the first run
	first  *wire.Answer // … and its answer
	Notes  []string
}

// learner sends the requests that show the abilities of an endpoint. After its first
// error it sends no more.
type learner struct {
	*env

	err error
}

func (l *learner) ask(c wire.Call) *wire.Answer {
	a := new(wire.Answer)
	if l.err == nil {
		if got, err := l.try(l.options.URL, c); err == nil {
			a = got
		} else {
			l.err = err
		}
	}
	return a
}

// learn returns the abilities of the endpoint.
func learn(ctx context.Context, o *Options) (Facts, error) {
	l := &learner{env: &env{options: o, ctx: ctx}}
	unkeyed := l.ask(l.unkeyed())
	bareKey, quotedKey := l.ask(l.keyed(l.unkeyed(), uuid())), l.ask(l.keyed(l.unkeyed(), `"`+uuid()+`"`))
	if l.err != nil {
		return Facts{}, l.err
	}
	f := &l.facts
	f.set(optional, unkeyed.OK(), "a request without a key runs")
	f.set(required, unkeyed.Status/100 == 4, "a request without a key is refused")
	f.set(bare, bareKey.OK(), "bare keys are accepted")
	f.set(quoted, quotedKey.OK(), "quoted keys are accepted")
	if !bareKey.OK() && !quotedKey.OK() {
		return Facts{}, &UnusableError{"the endpoint answers " + bareKey.String() + " to a new key, want 2xx: pass what it needs with --body and --field"}
	}
	f.quoted = quotedKey.OK() && (o.Profile.quoted || !bareKey.OK())

	f.call = l.post()
	one, two := l.ask(f.call), l.ask(l.post())
	f.first = one
	if one.Header.Get(runField) != "" {
		f.mark = runField
	}
	if l.err == nil && !l.ran(one, two) {
		return Facts{}, &UnusableError{"two runs are answered alike (" + one.String() + "), so a replay cannot be told from a run: let the answer differ from run to run"}
	}
	for _, to := range append(slices.Clip(o.Also), o.Other) {
		if to != nil && l.err == nil {
			l.reaches(to)
		}
	}
	l.programs()
	if another := l.ask(l.post().WithBody(o.Another)); l.err == nil && !another.OK() {
		return Facts{}, &UnusableError{"the endpoint answers " + another.String() + " to the other body, want 2xx: pass one with --other-body"}
	}
	f.set(patch, l.ask(l.post().WithMethod(http.MethodPatch)).OK(), "PATCH is answered")
	f.have |= o.declared()
	if o.Executions != nil && l.err == nil {
		if err := l.counts(); err != nil {
			return Facts{}, err
		}
	}
	return *f, l.err
}

// reaches demands that an address accepts connections.
func (l *learner) reaches(to *url.URL) {
	conn, err := l.options.Client.Dial(l.ctx, to)
	if err != nil {
		l.err = fmt.Errorf("%s: %w", to.Redacted(), err)
		return
	}
	conn.Close()
}

// programs finds out which parts of a program the endpoint honours.
func (l *learner) programs() {
	const unusual = http.StatusNonAuthoritativeInfo // no endpoint answers so on its own
	a := l.ask(told(l.post(), program{Status: unusual, Headers: [][2]string{{"X-Told", "yes"}}, Body: []byte("\x00told")}))
	f := &l.facts
	f.set(status, a.Status == unusual, "")
	if f.have&status == 0 || f.mark == "" {
		f.have &^= status
		f.Notes = append(f.Notes, "the endpoint follows no programs ("+programField+", "+runField+")")
		return
	}
	f.set(fields, a.Header.Get("X-Told") == "yes", "")
	sized := l.ask(told(l.post(), program{BodySize: 1000}))
	f.set(bytes, a.Body == "\x00told" && len(sized.Body) == 1000, "")
	const wait = 300 * time.Millisecond
	began := time.Now()
	slow := l.ask(l.slow(l.post(), wait))
	f.set(delay, slow.OK() && time.Since(began) >= wait, "")
	_, cut := l.try(l.options.URL, told(l.post(), program{BodySize: 1000, Behaviour: abortBehaviour}))
	f.set(abort, wire.Closed(cut), "")
	var ignored []string
	for _, part := range []struct {
		need need
		name string
	}{{fields, "headers"}, {bytes, "body"}, {delay, "delay"}, {abort, "behaviour"}} {
		if f.have&part.need == 0 {
			ignored = append(ignored, part.name)
		}
	}
	note := "the endpoint follows programs"
	if len(ignored) > 0 {
		note += ", but ignores " + strings.Join(ignored, ", ")
	}
	f.Notes = append(f.Notes, note)
}

// counts refuses a counter that counts anything but the runs of the endpoint.
func (l *learner) counts() error {
	before, err := l.counter()
	if err != nil {
		return err
	}
	l.ask(l.post())
	after, err := l.counter()
	if err == nil && l.err == nil && after != before+1 {
		err = &UnusableError{"the counter of runs did not go up by one with a run: --executions wants one of this endpoint alone, which has no other clients now, and whose effect is there when it answers"}
	}
	return err
}

func (f *Facts) set(n need, ok bool, note string) {
	if !ok {
		return
	}
	f.have |= n
	if note != "" {
		f.Notes = append(f.Notes, note)
	}
}

// declared returns the needs that the command line meets.
func (o *Options) declared() (have need) {
	for n, ok := range map[need]bool{
		principals: len(o.Scopes) > 1, addresses: len(o.Also) > 0, otherEndpoint: o.Other != nil, counter: o.Executions != nil,
		restart: o.Restart != nil, retention: o.Retention > 0 && 3*o.Retention < o.MaxTime,
	} {
		if ok {
			have |= n
		}
	}
	return have
}

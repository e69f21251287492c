package testapp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

var defaultBody = []byte(adaptertest.DefaultBody)

// PanicValue is the value with which programs panic.
const PanicValue = "panic of the test program"

// errReported is the error that programs report.
var errReported = errors.New("error of the test program")

// Run runs the program of a call as the handler of op. The context is the one that the
// framework gives a handler, with the values and the cancellation of the middleware. The
// native handler returns the result of Run.
func (a *App) Run(ctx context.Context, c Call, op string) error {
	runs, header := a.runs.Of(op), c.Program()
	if header == "" {
		defer runs.end()
		c.AddHeader(adaptertest.ExecHeader, strconv.FormatInt(runs.begin(), 10))
		c.AddHeader("Content-Type", adaptertest.DefaultContentType)
		c.SetStatus(adaptertest.DefaultStatus)
		c.Write(defaultBody, adaptertest.WriteBytes)
		return nil
	}
	program, err := adaptertest.ParseProgram(header)
	if err != nil {
		protocol.Release(ctx) // a mistake of the test, not a response to keep
		return complain(c, http.StatusBadRequest, err)
	}
	n := strconv.FormatInt(runs.begin(), 10)
	defer runs.end()
	if program.Behaviour == adaptertest.Hijacks {
		program.Headers = append(program.Headers, adaptertest.Pair{adaptertest.ExecHeader, n})
	} else {
		c.AddHeader(adaptertest.ExecHeader, n)
	}
	return a.follow(ctx, c, op, &program)
}

// follow runs a program, in the order that [adaptertest.Program] gives.
func (a *App) follow(ctx context.Context, c Call, op string, p *adaptertest.Program) error {
	if p.Effect && a.effect != nil {
		if err := a.effect(ctx, op); err != nil {
			return complain(c, http.StatusInternalServerError, err)
		}
	}
	for _, i := range p.Informational {
		c.Inform(i.Status, i.Headers)
	}
	content := p.Content()
	var echo adaptertest.Echo
	if p.Echo {
		echo = echoOf(ctx, c)
	}
	done := pause(ctx, p.DelayMS, p.IgnoreCtx)
	if p.Echo {
		if cause := context.Cause(ctx); cause != nil {
			echo.ContextCause = cause.Error()
		}
		content, _ = json.Marshal(echo) // every field has a JSON form
		p.Headers = append(p.Headers, adaptertest.Pair{"Content-Type", "application/json"})
	}
	decide(ctx, p)
	switch {
	case !done && !p.Echo:
		return c.Fail(http.StatusInternalServerError)
	case p.Behaviour == adaptertest.Hijacks:
		return c.Hijack(rawAnswer(p.Headers, content))
	}
	for _, name := range p.Remove {
		c.RemoveHeader(name)
	}
	AddHeaders(c, p.Headers)
	if p.Report {
		c.Report(errReported)
	}
	switch {
	case p.Behaviour == adaptertest.Fails:
		return c.Fail(cmp.Or(p.Status, http.StatusInternalServerError))
	case p.StatusOnly:
		return c.SetStatusOnly(p.Status)
	}
	answer(ctx, c, p, content)
	return nil
}

// decide takes the handler's own decisions on its response.
func decide(ctx context.Context, p *adaptertest.Program) {
	if p.Keep {
		protocol.Keep(ctx)
	}
	if p.Release {
		protocol.Release(ctx)
	}
	if p.NoBody {
		protocol.OmitBody(ctx)
	}
	if p.Unknown != "" {
		protocol.Unknown(ctx, p.Unknown)
	}
}

// pause waits and reports true, or false as soon as the context is cancelled, unless
// ignore is set.
func pause(ctx context.Context, ms int, ignore bool) bool {
	if ms <= 0 {
		return true
	}
	cancelled := ctx.Done()
	if ignore {
		cancelled = nil
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-cancelled:
		return false
	}
}

// echoOf reads the request.
func echoOf(ctx context.Context, c Call) adaptertest.Echo {
	body, err := c.Body()
	sum := sha256.Sum256(body)
	echo := adaptertest.Echo{
		Method: c.Method(), RawPath: c.RawPath(), RawQuery: c.RawQuery(),
		BodySHA256: hex.EncodeToString(sum[:]), BodyLength: len(body),
	}
	if err != nil {
		echo.BodyError = err.Error()
	}
	if view, ok := reprise.AttemptFrom(ctx); ok {
		echo.Attempt, echo.Fence = view.Number(), view.Fence()
	}
	return echo
}

// complain responds that the test server could not follow the program.
func complain(c Call, status int, err error) error {
	c.AddHeader("Content-Type", "text/plain; charset=utf-8")
	c.SetStatus(status)
	c.Write([]byte(err.Error()+"\n"), adaptertest.WriteBytes)
	return nil
}

// rawAnswer is the whole response of a handler that took the connection.
func rawAnswer(fields []adaptertest.Pair, content []byte) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nConnection: close\r\n\r\n", len(content))
	b.Write(content)
	return b.Bytes()
}

// AddHeaders adds field lines to the response.
func AddHeaders(out Output, fields []adaptertest.Pair) {
	for _, f := range fields {
		out.AddHeader(f[0], f[1])
	}
}

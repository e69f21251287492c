package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

var defaultBody = []byte(conformance.DefaultBody)

// panicValue is what programs panic with.
const panicValue = "panic of the test program"

// run runs the program of a call as the handler of op. The context is what the framework gives a handler for its work, with the
// values and the cancellation of the middleware. What run returns is for the native handler to return.
func (a *app) run(ctx context.Context, c call, op string) error {
	runs, header := a.runs.of(op), c.program()
	if header == "" {
		defer runs.end()
		c.addHeader(conformance.ExecHeader, strconv.FormatInt(runs.begin(), 10))
		c.addHeader("Content-Type", conformance.DefaultContentType)
		c.setStatus(conformance.DefaultStatus)
		c.write(defaultBody, conformance.WriteBytes)
		return nil
	}
	program, err := conformance.ParseProgram(header)
	if err != nil {
		protocol.Release(ctx) // a mistake of the test, not an answer to keep
		return complain(c, http.StatusBadRequest, err)
	}
	n := strconv.FormatInt(runs.begin(), 10)
	defer runs.end()
	if program.Behaviour == conformance.Hijacks {
		program.Headers = append(program.Headers, conformance.Pair{conformance.ExecHeader, n})
	} else {
		c.addHeader(conformance.ExecHeader, n)
	}
	return a.follow(ctx, c, op, &program)
}

// follow does what a program says, in the order that [conformance.Program] gives.
func (a *app) follow(ctx context.Context, c call, op string, p *conformance.Program) error {
	if p.Effect && a.effect != nil {
		if err := a.effect(ctx, op); err != nil {
			return complain(c, http.StatusInternalServerError, err)
		}
	}
	for _, i := range p.Informational {
		c.inform(i.Status, i.Headers)
	}
	content := p.Content()
	var echo conformance.Echo
	if p.Echo {
		echo = echoOf(ctx, c)
	}
	done := pause(ctx, p.DelayMS, p.IgnoreCtx)
	if p.Echo {
		if cause := context.Cause(ctx); cause != nil {
			echo.ContextCause = cause.Error()
		}
		content, _ = json.Marshal(echo) // it has nothing that JSON does not have
		p.Headers = append(p.Headers, conformance.Pair{"Content-Type", "application/json"})
	}
	decide(ctx, p)
	switch {
	case !done && !p.Echo:
		return c.fail(http.StatusInternalServerError)
	case p.Behaviour == conformance.Hijacks:
		return c.hijack(rawAnswer(p.Headers, content))
	}
	addHeaders(c, p.Headers)
	if p.Behaviour == conformance.Fails {
		return c.fail(statusOr(p.Status, http.StatusInternalServerError))
	}
	answer(ctx, c, p, content)
	return nil
}

// decide takes the handler's own decisions on its response.
func decide(ctx context.Context, p *conformance.Program) {
	if p.Keep {
		protocol.Keep(ctx)
	}
	if p.Release {
		protocol.Release(ctx)
	}
	if p.NoBody {
		protocol.OmitBody(ctx)
	}
}

// pause waits and reports true, or false as soon as the context is cancelled, unless that is to be ignored.
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
func echoOf(ctx context.Context, c call) conformance.Echo {
	body, err := c.body()
	sum := sha256.Sum256(body)
	echo := conformance.Echo{
		Method: c.method(), RawPath: c.rawPath(), RawQuery: c.rawQuery(),
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

// complain answers that the test server could not do what it was asked for.
func complain(c call, status int, err error) error {
	c.addHeader("Content-Type", "text/plain; charset=utf-8")
	c.setStatus(status)
	c.write([]byte(err.Error()+"\n"), conformance.WriteBytes)
	return nil
}

// rawAnswer is the whole answer of a handler that took the connection.
func rawAnswer(fields []conformance.Pair, content []byte) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nConnection: close\r\n\r\n", len(content))
	b.Write(content)
	return b.Bytes()
}

func addHeaders(out output, fields []conformance.Pair) {
	for _, f := range fields {
		out.addHeader(f[0], f[1])
	}
}

func statusOr(status, otherwise int) int {
	if status == 0 {
		return otherwise
	}
	return status
}

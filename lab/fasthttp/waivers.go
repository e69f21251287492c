package labfasthttp

import (
	"bufio"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/conformance"
)

// Waivers returns those of every adapter on this release of fasthttp: from 1.70 on it
// keeps a promise that releases before it do not.
func Waivers() []conformance.Waiver {
	all := []conformance.Waiver{
		{Case: "R1e", Silent: true, Says: "no handler started", Reason: "fasthttp reads the whole body before any handler, with a key or without"},
		{Case: "R17a", Silent: true, Says: "103 Early Hints", Reason: "fasthttp sends no informational answers"},
		{Case: "R26c", Says: "answered 413", Reason: "fasthttp refuses or reads the body by itself before any handler: a declared length over its own limit is its plain 413"},
		{Case: "R27e", Says: "answered 200", Reason: "fasthttp before 1.70 takes a chunked body as whole once its last chunk came; the handler gets all of it"},
		{Case: "R28a", Silent: true, Says: "read an answer", Reason: "fasthttp asks the client to continue before any handler, so the refusal comes after the body"},
	}
	const broken = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
	if new(fasthttp.Request).Read(bufio.NewReader(strings.NewReader(broken))) == nil {
		return all
	}
	return slices.DeleteFunc(all, func(w conformance.Waiver) bool { return w.Case == "R27e" })
}

package nativeapp

import (
	"bufio"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

// Waivers returns those of this release of fasthttp: from 1.70 on it keeps a promise that
// releases before it do not.
func Waivers() []conformance.Waiver {
	const broken = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
	all := testapp.FastHTTPWaivers
	if new(fasthttp.Request).Read(bufio.NewReader(strings.NewReader(broken))) != nil {
		all = all[:len(all)-1]
	}
	return all
}

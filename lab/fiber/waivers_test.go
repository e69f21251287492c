//go:build !without_fiber

package matrix

import (
	"bufio"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/conformance"
)

// Releases of fasthttp from 1.70 on keep a promise that those before it do not: the
// waiver goes when the matrix runs with the newest one.
func init() {
	const broken = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
	if new(fasthttp.Request).Read(bufio.NewReader(strings.NewReader(broken))) == nil {
		return
	}
	for i, a := range matrixAdapters {
		if a.name == "fiber" {
			matrixAdapters[i].waivers = slices.DeleteFunc(a.waivers, func(w conformance.Waiver) bool { return w.Case == "R27e" })
		}
	}
}

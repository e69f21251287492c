package matrix

import (
	"fmt"
	"os"
	"testing"

	"github.com/reprise-go/reprise/conformance/servers"
	"go.uber.org/goleak"
)

// TestMain fails a run that passed and left a goroutine behind.
func TestMain(m *testing.M) {
	code := servers.Main{M: m}.Run()
	if code == 0 {
		err := goleak.Find(
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),    // a clock that nothing stops
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // sleeps for ten seconds before it looks
		)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

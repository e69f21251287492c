// Package chromium starts a headless browser for tests.
package chromium

import (
	"context"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/reprise-go/reprise/servers"
)

// Start starts Chromium with one tab, and returns the context of the tab. Without a
// browser the test is skipped, unless REPRISE_TEST_REQUIRE has "chromium".
func Start(t *testing.T, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if servers.Required(t, "chromium") {
			t.Fatal("no chromium in the path, and REPRISE_TEST_REQUIRE names it")
		}
		t.Skip("no chromium in the path")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // tests run as root, in containers
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.UserDataDir(t.TempDir()),
	)
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), append(flags, options...)...)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(tab) // waits for the process
		closeTab()
		stop()
	})
	return tab
}

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// browser is a headless Chromium with one tab.
type browser struct {
	*testing.T

	tab context.Context

	mu       sync.Mutex
	problems []string // reported by the pages: dialogs, exceptions, console messages
}

// openBrowser starts Chromium. Without one the test is skipped, unless
// REPRISE_TEST_REQUIRE has "chromium".
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
		}
	}
	if path == "" {
		missing(t, "chromium", "no chromium in the path")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // tests run as root, in containers
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.UserDataDir(t.TempDir()),
	)
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), flags...)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(tab) // waits for the process
		closeTab()
		stop()
	})
	b := &browser{T: t, tab: tab}
	chromedp.ListenTarget(tab, func(event any) {
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			b.report("dialog: " + e.Message)
		case *runtime.EventExceptionThrown:
			b.report("exception: " + e.ExceptionDetails.Error())
		case *cdplog.EventEntryAdded:
			b.report(fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
		}
	})
	b.run(cdplog.Enable())
	b.looks(1280, "light")
	return b
}

func missing(t *testing.T, name, text string) {
	t.Helper()
	if servers.Required(t, name) {
		t.Fatal(text)
	}
	t.Skip(text)
}

func (b *browser) report(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// reported returns the reports of the pages since the last call.
func (b *browser) reported() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.problems
	b.problems = nil
	return all
}

func (b *browser) run(actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.tab, time.Minute)
	defer cancel()
	if chromedp.FromContext(b.tab).Browser == nil {
		ctx = b.tab // the first run starts the browser, which lives as long as its context
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatalf("%v (the pages reported %q)", err, b.reported())
	}
}

// script runs JavaScript, and returns its value.
func script[T any](b *browser, source string) (value T) {
	b.Helper()
	b.run(chromedp.Evaluate(source, &value))
	return value
}

// visit opens a page.
func (b *browser) visit(url string) {
	b.Helper()
	b.run(chromedp.Navigate(url), chromedp.WaitReady("main"))
}

// text returns the text of an element, on one line.
func (b *browser) text(selector string) (text string) {
	b.Helper()
	b.run(chromedp.Text(selector, &text, chromedp.ByQuery))
	return strings.Join(strings.Fields(text), " ")
}

// says demands texts of the page.
func (b *browser) says(texts ...string) {
	b.Helper()
	got := b.text("body")
	for _, text := range texts {
		if !strings.Contains(got, text) {
			b.Errorf("the page does not say %q:\n%s", text, got)
		}
	}
}

// keys types as at a keyboard.
func (b *browser) keys(text string) {
	b.Helper()
	b.run(chromedp.KeyEvent(text))
}

// tabTo presses Tab until the element that has the focus matches a script's condition on
// el, as a person without a mouse does.
func (b *browser) tabTo(condition string) {
	b.Helper()
	for range 80 {
		b.keys("\t")
		if script[bool](b, `(el => el && el !== document.body && (`+condition+`))(document.activeElement)`) {
			if !script[bool](b, `document.activeElement.matches(":focus-visible")`) {
				b.Errorf("the focus on %s cannot be seen", condition)
			}
			return
		}
	}
	b.Fatalf("Tab never reaches %s", condition)
}

// fill goes to a field and replaces its text.
func (b *browser) fill(id, text string) {
	b.Helper()
	b.tabTo(`el.id === "` + id + `" && (el.select(), true)`)
	b.keys(text)
}

// press goes to a button and presses it.
func (b *browser) press(button string) {
	b.Helper()
	b.tabTo(`el.textContent === "` + button + `"`)
	b.enter()
}

// enter presses Enter on the focused element and waits for the next page.
func (b *browser) enter() {
	b.Helper()
	script[bool](b, `window.old = true`)
	b.keys("\r")
	labtest.Eventually(b, "the next page", func() bool {
		ctx, cancel := context.WithTimeout(b.tab, time.Second)
		defer cancel()
		next := false
		_ = chromedp.Run(ctx, chromedp.Evaluate(`!window.old && document.readyState === "complete"`, &next)) // an error: the page went away while it was asked
		return next
	})
}

// looks sets the width of the window, and light or dark.
func (b *browser) looks(width int64, scheme string) {
	b.Helper()
	b.run(
		emulation.SetDeviceMetricsOverride(width, 900, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	)
}

// scrollsSideways reports whether the page is wider than the window.
func (b *browser) scrollsSideways() bool {
	b.Helper()
	return script[bool](b, `document.documentElement.scrollWidth > document.documentElement.clientWidth`)
}

// axeSource returns axe-core, from the npm registry in the release and with the digest of
// testdata/axe. Without npm or the registry the test is skipped, unless
// REPRISE_TEST_REQUIRE has "npm".
func axeSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	labtest.Must(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "axe"))))
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		missing(t, "npm", fmt.Sprintf("axe-core cannot be installed: %v: %s", err, out))
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	labtest.Must(t, err)
	return string(source)
}

// axe checks the page with axe-core, which runs beside the page's own policy.
func (b *browser) axe(source string) {
	b.Helper()
	var result string
	b.run(
		chromedp.Evaluate(source+"\n;0", nil),
		chromedp.Evaluate(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => JSON.stringify({
			checked: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.help + " " + v.nodes.map(n => n.html).join(" "))}))`,
			&result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
	)
	var found struct {
		Checked    int
		Violations []string
	}
	labtest.Must(b, json.Unmarshal([]byte(result), &found))
	if found.Checked < 10 {
		b.Errorf("axe-core checked only %d rules", found.Checked)
	}
	for _, violation := range found.Violations {
		b.Errorf("axe-core: %s", violation)
	}
}

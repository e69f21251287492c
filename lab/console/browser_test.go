package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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

	"github.com/reprise-go/reprise/lab/console/chromium"
)

// browser is a headless Chromium with one tab.
type browser struct {
	*testing.T

	tab context.Context

	mu       sync.Mutex
	problems []string // reported by the pages: dialogs, exceptions, console messages
}

// openBrowser starts Chromium.
func openBrowser(t *testing.T, options ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	tab := chromium.Start(t, options...)
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
	b.run(cdplog.Enable(), emulation.SetDeviceMetricsOverride(1200, 900, 1, false))
	return b
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
	ctx, cancel := context.WithTimeout(b.tab, 30*time.Second)
	defer cancel()
	if chromedp.FromContext(b.tab).Browser == nil {
		ctx = b.tab // the first run starts the browser, which lives as long as its context
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatalf("%v (the pages reported %q)", err, b.reported())
	}
}

// visit opens a page.
func (b *browser) visit(url string) {
	b.Helper()
	b.run(chromedp.Navigate(url), chromedp.WaitReady("main"))
}

// text returns the visible text of the page.
func (b *browser) text() string {
	b.Helper()
	var text string
	b.run(chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// says demands texts of the page.
func (b *browser) says(texts ...string) {
	b.Helper()
	got := b.text()
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
		var there, visible bool
		b.run(
			chromedp.Evaluate(`(el => el && el !== document.body && (`+condition+`))(document.activeElement)`, &there),
			chromedp.Evaluate(`document.activeElement.matches(":focus-visible")`, &visible),
		)
		if there {
			if !visible {
				b.Errorf("the focus on %s cannot be seen", condition)
			}
			return
		}
	}
	b.Fatalf("Tab never reaches %s", condition)
}

// enter presses Enter on the focused element and waits for the next page.
func (b *browser) enter() {
	b.Helper()
	b.run(chromedp.Evaluate(`window.old = true`, nil))
	b.keys("\r")
	await(b.T, "the next page", func() (string, bool) {
		ctx, cancel := context.WithTimeout(b.tab, time.Second)
		defer cancel()
		next := false
		err := chromedp.Run(ctx, chromedp.Evaluate(`!window.old && document.readyState === "complete"`, &next))
		return fmt.Sprint(err), next // an error: the page went away while it was asked
	})
}

// shot keeps a picture of the page as an artefact of the test (go test -artifacts).
func (b *browser) shot(name string) {
	b.Helper()
	var picture []byte
	b.run(chromedp.FullScreenshot(&picture, 100))
	if err := os.WriteFile(filepath.Join(b.ArtifactDir(), name+".png"), picture, 0o600); err != nil {
		b.Error(err)
	}
}

// looks sets the width of the window, and light or dark.
func (b *browser) looks(width int64, scheme string) {
	b.Helper()
	b.run(
		emulation.SetDeviceMetricsOverride(width, 900, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	)
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
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		b.Fatal(err)
	}
	if found.Checked < 10 {
		b.Errorf("axe-core checked only %d rules", found.Checked)
	}
	for _, violation := range found.Violations {
		b.Errorf("axe-core: %s", violation)
	}
}

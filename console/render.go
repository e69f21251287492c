package console

import (
	"bytes"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// page is the data of every template.
type page struct {
	Title   string // of the console
	Heading string // of the page
	Root    string // the way from this page to the root of the console
	Name    string // of the template
	Who     string // the sender
	Reveals bool   // the sender may see responses
	Live    bool   // it is refreshed: a page that was read, without a notice
	Read    time.Time
	Script  template.JS
	Writes  bool // the sender may change records
	Stores  []Store
	Notice  string // the completed action, or the failure
	Failed  bool   // the notice is about a failure
	View    any    // of the template
}

// table is the data of the part "records".
type table struct {
	Root, Store string
	Rows        []row
	Select, All bool // there are boxes to select records, checked
}

// confirmation is the data of the part "confirm".
type confirmation struct{ For, Reason, Text string }

var pageNames = []string{"home", "list", "record", "several", "find", "policies", "trail", "failure"}

func parsePages() (map[string]*template.Template, error) {
	base, err := template.New("layout.html").Funcs(template.FuncMap{
		"ago":      ago,
		"instant":  instant,
		"duration": duration,
		"bytes":    byteCount,
		"recordAt": recordPath,
		"confirm":  func(form, reason, text string) confirmation { return confirmation{form, reason, text} },
		"records":  func(root, store string, list []row, box, all bool) table { return table{root, store, list, box, all} },
	}).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]*template.Template, len(pageNames))
	for _, name := range pageNames {
		layout, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if pages[name], err = layout.ParseFS(templateFiles, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// show writes a page, which is rendered completely before its first byte is sent.
func (s *site) show(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Title, p.Stores, p.Reveals, p.Writes = s.config.Title, s.stores, may(r, Reveal), may(r, Resolve)
	p.Name, p.Who = name, visitorOf(r).who
	p.Root, p.Read, p.Script, p.Live = root(r), time.Now(), refreshScript, p.Live && p.Notice == ""
	var b bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&b, "layout.html", p); err != nil {
		s.config.Log.LogAttrs(r.Context(), slog.LevelError, "console: a page could not be rendered",
			slog.String("page", name), slog.String("error", err.Error()))
		http.Error(w, "The page could not be rendered. The log of the service has the reason.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes())
	}
}

// root returns the way from the page of a request to the root of the console.
func root(r *http.Request) string {
	if depth := strings.Count(r.URL.Path, "/") - 1; depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}

// fail shows a page that explains the failure.
func (s *site) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	s.show(w, r, status, "failure", page{Heading: http.StatusText(status), Notice: message, Failed: true})
}

// ago returns how long before now an instant was, for a person.
func ago(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return duration(time.Since(t)) + " ago"
}

// instant returns an instant in full.
func instant(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// duration returns d in one or two units.
func duration(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "−", -d
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%d ms", sign, d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%s%d s", sign, int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%s%d min", sign, int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%d h %d min", sign, int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%s%d days", sign, int(d.Hours())/24)
	}
}

func byteCount(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}

// Package console is a small website for the people who operate services that use
// Reprise. It shows the running operations, finds those that need a human, shows the
// contents of a record and the client's next response, and resolves it:
//
//	events := console.NewEvents()
//	engine, err := reprise.New(store, reprise.Config{Observer: events})
//	// …
//	pages, err := console.Handler(console.Config{
//		Stores:  []console.Store{{Name: "payments", Store: store}},
//		Engines: []console.Engine{{Name: "payments", Engine: engine}},
//		Guards:  []*protocol.Guard{guard},
//		Events:  events,
//		Allow:   func(r *http.Request) bool { return isOperator(r) },
//	})
//	mux.Handle("/idempotency/", requireEmployee(http.StripPrefix("/idempotency", pages)))
//
// It has no authentication: mount it behind the company's. It is read-only unless
// [Config].Allow grants a request to write. It needs no script, loads no resource from
// another address, and refuses writes from another site's page.
//
// A listing looks at a bounded number of records for each page, so it does not load a
// store that holds millions.
package console

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Config is the configuration of the console.
type Config struct {
	// Title stands at the top of every page. The default is "Idempotency".
	Title string

	// Stores are the stores that the console lists and resolves, at least one. Each must
	// have the ability [store.Inspector].
	Stores []Store

	// Engines are the engines of this process, for the numbers of the home page. The engine
	// with the name of a store reports the records resolved in it ([reprise.EventResolved]).
	Engines []Engine

	// Guards are the policies of this process. The label of a record is the name of its
	// policy, which decides the client's next response.
	Guards []*protocol.Guard

	// Events are the recent events of this process. Nil shows no events and no history.
	Events *Events

	// Allow, if not nil, grants a request the right to resolve records. Nil grants it to
	// none.
	Allow func(r *http.Request) bool

	// Operator names who sent a request, for the log. The default is the address.
	Operator func(r *http.Request) string

	// Hosts, if not empty, are the accepted values of the Host field. A console without
	// authentication, on a loopback address, needs it: another site's name can be made to
	// resolve to that address.
	Hosts []string

	// Log receives a record before and one after every resolution, and one for every body
	// that was revealed. A resolution that cannot be logged is not made. The default is
	// [slog.Default].
	Log *slog.Logger
}

// Store is a store with a name: 1 to 40 of the bytes a to z, 0 to 9, "-", "_" and ".".
type Store struct {
	Name  string
	Store store.Store
}

// Engine is an engine with a name.
type Engine struct {
	Name   string
	Engine *reprise.Engine
}

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed style.css
var styleSheet []byte

// site is the console. Its methods are the pages.
type site struct {
	config Config
	pages  map[string]*template.Template
	origin *http.CrossOriginProtection
}

// Handler returns the console. It serves paths from the root: mount it with
// [http.StripPrefix], with a slash at the end of the pattern. It is safe for concurrent
// use and starts no goroutine. The error wraps [store.ErrInvalid] and names the invalid
// field.
func Handler(c Config) (http.Handler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Title == "" {
		c.Title = "Idempotency"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Operator == nil {
		c.Operator = func(r *http.Request) string { return r.RemoteAddr }
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	s := &site{config: c, pages: pages, origin: http.NewCrossOriginProtection()}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /records", s.list)
	mux.HandleFunc("GET /records/{store}/{id}", s.record)
	mux.HandleFunc("POST /records/{store}/{id}", s.resolve)
	mux.HandleFunc("GET /find", s.findForm)
	mux.HandleFunc("POST /find", s.find)
	mux.HandleFunc("GET /policies", s.policies)
	mux.HandleFunc("GET /style.css", serveStyle)
	mux.HandleFunc("/", s.notFound)
	return s.protect(mux), nil
}

func (c *Config) validate() error {
	if len(c.Stores) == 0 {
		return invalid("Stores is empty")
	}
	for i, st := range c.Stores {
		if !validStoreName(st.Name) {
			return invalid("Stores[%d].Name is %q, want 1 to 40 of a to z, 0 to 9, -, _ and .", i, st.Name)
		}
		if slices.ContainsFunc(c.Stores[:i], func(other Store) bool { return other.Name == st.Name }) {
			return invalid("Stores: two are named %q", st.Name)
		}
		if st.Store == nil {
			return invalid("Stores[%d].Store is nil", i)
		}
		if _, ok := store.As[store.Inspector](st.Store); !ok {
			return invalid("Stores[%d].Store is not a reprise.Inspector", i)
		}
	}
	for i, engine := range c.Engines {
		if engine.Engine == nil {
			return invalid("Engines[%d].Engine is nil", i)
		}
	}
	if i := slices.Index(c.Guards, nil); i >= 0 {
		return invalid("Guards[%d] is nil", i)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: console.Config.%s", store.ErrInvalid, fmt.Sprintf(format, args...))
}

func validStoreName(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}
	return name != "" && len(name) <= 40 && strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, other)
}

// protect sets the security headers for browsers, and refuses writes from another site's
// page.
func (s *site) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, field := range [...][2]string{
			{"Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
			{"X-Content-Type-Options", "nosniff"},
			{"X-Frame-Options", "DENY"},
			{"Referrer-Policy", "same-origin"},
			{"Cross-Origin-Opener-Policy", "same-origin"},
			{"Cross-Origin-Resource-Policy", "same-origin"},
			{"Cache-Control", "no-store"},
		} {
			w.Header().Set(field[0], field[1])
		}
		if len(s.config.Hosts) > 0 && !slices.Contains(s.config.Hosts, r.Host) {
			s.fail(w, r, http.StatusMisdirectedRequest, "The console does not answer under this host name.")
			return
		}
		if err := s.origin.Check(r); err != nil {
			s.fail(w, r, http.StatusForbidden, "The request came from the page of another site. Nothing was changed.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// may reports whether a request may change records.
func (s *site) may(r *http.Request) bool { return s.config.Allow != nil && s.config.Allow(r) }

// inspector returns the store that is called name.
func (s *site) inspector(name string) (store.Inspector, bool) {
	for _, st := range s.config.Stores {
		if st.Name == name {
			return store.As[store.Inspector](st.Store)
		}
	}
	return nil, false
}

// policy returns the policy that is called label, nil where this process has none.
func (s *site) policy(label string) *protocol.Config {
	for _, guard := range s.config.Guards {
		if c := guard.Config(); c.Name == label {
			return &c
		}
	}
	return nil
}

// redirect sends the browser to a page of the console, given relative to the page that it
// asked for: the console does not know where it is mounted.
func redirect(w http.ResponseWriter, relative string) {
	w.Header().Set("Location", relative)
	w.WriteHeader(http.StatusSeeOther)
}

// recordPath returns the address of a record below the root of the console.
func recordPath(store string, id store.ID) string {
	return "records/" + url.PathEscape(store) + "/" + id.String()
}

func serveStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(styleSheet)
}

func (s *site) notFound(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, r, http.StatusMethodNotAllowed, "The console has no such form.")
		return
	}
	s.fail(w, r, http.StatusNotFound, "The console has no such page.")
}

// storeFailure returns the status and the sentence for an error of a store.
func storeFailure(err error) (status int, message string) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, "There is no record with this ID. It was never claimed, was released, or its retention has ended."
	case errors.Is(err, store.ErrRecordChanged):
		return http.StatusConflict, "The record has changed since it was shown. Nothing was changed."
	case errors.Is(err, store.ErrInvalid):
		return http.StatusBadRequest, "The store refused the request: " + err.Error() + "."
	case errors.Is(err, store.ErrMisconfigured):
		return http.StatusBadGateway, "The store refused the operation. Its user may lack a permission: " + err.Error() + "."
	case errors.Is(err, store.ErrUnknown):
		return http.StatusBadGateway, "The store did not answer. A change may have been written: look at the record again. " + err.Error() + "."
	default:
		return http.StatusBadGateway, "The store could not be read. " + err.Error() + "."
	}
}

// patience bounds the calls that one page makes to its stores.
const patience = 5 * time.Second

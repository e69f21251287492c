// Package console is a small website for the people who operate services that use
// Reprise. It shows the running operations, finds those that need a person, shows the
// contents of a record and the client's next response, and resolves it:
//
//	events := console.NewEvents()
//	engine, err := reprise.New(store, reprise.Config{Observer: events})
//	// …
//	access := func(r *http.Request) (string, console.Permission) {
//		switch user := userOf(r); { // of the company's middleware
//		case user.OnCall:
//			return user.Name, console.Look | console.Reveal | console.Resolve
//		default:
//			return user.Name, console.Look
//		}
//	}
//	pages, err := console.Handler([]console.Store{{Name: "payments", Store: store}}, access, console.Config{
//		Engines: []console.Engine{{Name: "payments", Engine: engine}},
//		Guards:  []*protocol.Guard{guard},
//		Events:  events,
//	})
//	mux.Handle("/idempotency/", requireEmployee(http.StripPrefix("/idempotency", pages)))
//
// It has no authentication: mount it behind the company's, and let [Access] return the
// name and the permissions of the sender of a request. The pages work without their one
// script, which refreshes them. They load no resource from another address, and the
// console refuses writes from the page of another site.
//
// A page reads a store for about a second, however many records it holds, and for up to
// 5 s if the store hangs. It reads it again every 30 s while it refreshes. The overview
// counts all records, which takes PostgreSQL about a second for a million, and Redis six:
// once at a time, which all who look share, and for a tenth of the time. Until a count
// has ended, and of a store that is no [store.Counter] and has too many records to list
// in a second, the numbers are "at least". Finding a record by the beginning of its ID
// reads the whole store, for up to 20 s and once at a time.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
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

	// Engines are the engines of this process, for the numbers of the home page. The engine
	// that has the name of a store reports the records that are resolved in that store
	// ([reprise.EventResolved]).
	Engines []Engine

	// Guards are the policies of this process. The label of a record is the name of its
	// policy, which decides the client's next response.
	Guards []*protocol.Guard

	// Events are the recent events of this process. The default is none: the console shows
	// no events and no history.
	Events *Events

	// TrustedOrigins are the origins of the console's own pages, such as
	// "https://ops.example.com", behind a proxy that rewrites the Host field. Browsers that
	// send no Sec-Fetch-Site need them: only the host shows whether their forms are of
	// another site.
	TrustedOrigins []string

	// Hosts, if not empty, are the accepted values of the Host field. A console without
	// authentication, on a loopback address, needs it: another site's name can be made to
	// resolve to that address.
	Hosts []string

	// Log receives a line before and after every resolution, and one before a response is
	// revealed. A change or a response whose line cannot be written is not made or shown.
	// The default is [slog.Default].
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

// refreshScript is the only script that a page may run: contentPolicy has its digest.
//
//go:embed refresh.js
var refreshScript template.JS

// contentPolicy is the Content-Security-Policy of every page.
var contentPolicy = func() string {
	digest := sha256.Sum256([]byte(refreshScript))
	return "default-src 'none'; style-src 'self'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
		"'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// site is the console. Its methods are the pages.
type site struct {
	config Config
	stores []Store
	access Access
	events *Events // the trail, also where Config.Events is nil
	pages  map[string]*template.Template
	origin *http.CrossOriginProtection
	search chan struct{} // holds the one request that reads a whole store

	surveys []survey // of each store
}

// Handler returns the console over stores, which must be at least one, each with the
// ability [store.Inspector]. access decides about each request. It serves paths from the
// root: mount it with [http.StripPrefix], with a slash at the end of the pattern. It is
// safe for concurrent use. The error wraps [store.ErrInvalid] and
// names the invalid argument or field.
func Handler(stores []Store, access Access, c Config) (http.Handler, error) {
	if err := validStores(stores); err != nil {
		return nil, err
	}
	if access == nil {
		return nil, invalid("access is nil: say who may look, reveal and resolve")
	}
	s := &site{config: c, stores: stores, access: access, origin: http.NewCrossOriginProtection(), search: make(chan struct{}, 1)}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if s.config.Title == "" {
		s.config.Title = "Idempotency"
	}
	if s.config.Log == nil {
		s.config.Log = slog.Default()
	}
	if s.events = s.config.Events; s.events == nil {
		s.events = NewEvents()
	}
	var err error
	if s.pages, err = parsePages(); err != nil {
		return nil, err
	}

	s.surveys = make([]survey, len(stores))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /records", s.list)
	mux.HandleFunc("GET /records/{store}/{id}", s.record)
	mux.HandleFunc("POST /records/{store}/{id}", s.change)
	mux.HandleFunc("POST /several", s.several)
	mux.HandleFunc("GET /trail", s.trail)
	mux.HandleFunc("GET /find", s.findForm)
	mux.HandleFunc("POST /find", s.find)
	mux.HandleFunc("GET /policies", s.policies)
	mux.HandleFunc("/", s.notFound)
	return s.protect(mux), nil
}

// validStores reports the first store that is invalid.
func validStores(stores []Store) error {
	if len(stores) == 0 {
		return invalid("stores is empty, want at least one")
	}
	for i, st := range stores {
		if !validStoreName(st.Name) {
			return invalid("stores[%d].Name is %q, want 1 to 40 of a to z, 0 to 9, -, _ and .", i, st.Name)
		}
		if slices.ContainsFunc(stores[:i], func(other Store) bool { return other.Name == st.Name }) {
			return invalid("stores: two are named %q", st.Name)
		}
		if st.Store == nil {
			return invalid("stores[%d].Store is nil", i)
		}
		if _, ok := store.As[store.Inspector](st.Store); !ok {
			return invalid("stores[%d].Store is not a store.Inspector", i)
		}
	}
	return nil
}

// validate reports the first invalid field of the configuration, and trusts its origins.
func (s *site) validate() error {
	for i, engine := range s.config.Engines {
		if engine.Engine == nil {
			return invalid("Config.Engines[%d].Engine is nil", i)
		}
	}
	if i := slices.Index(s.config.Guards, nil); i >= 0 {
		return invalid("Config.Guards[%d] is nil", i)
	}
	for i, origin := range s.config.TrustedOrigins {
		if err := s.origin.AddTrustedOrigin(origin); err != nil {
			return invalid("Config.TrustedOrigins[%d]: %v", i, err)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: console: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
}

func validStoreName(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}
	return name != "" && len(name) <= 40 && strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, other)
}

// inspector returns the store that is called name.
func (s *site) inspector(name string) (store.Inspector, bool) {
	for _, st := range s.stores {
		if st.Name == name {
			return store.As[store.Inspector](st.Store)
		}
	}
	return nil, false
}

// knows reports whether this process has the policy that is called label.
func (s *site) knows(label string) bool {
	return slices.ContainsFunc(s.config.Guards, func(g *protocol.Guard) bool { return g.Config().Label == label })
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

// patience bounds the calls that one page makes to its stores.
const patience = 5 * time.Second

package console

import (
	"context"
	"net/http"
	"slices"
)

// Access returns the name of the sender of a request, for the log, and the permissions of
// the request. It is called once for each request, and must be safe for concurrent use. A
// request without a permission gets 403, and one without a name can only look.
type Access func(r *http.Request) (who string, may Permission)

// Permission is a set of permissions, joined with "|". Zero is none.
type Permission uint8

// The permissions. Each includes [Look], and none includes another one.
const (
	Look    Permission = 1 << iota // see the records, without the fields and bodies of their responses
	Reveal                         // show a stored response; each time is logged
	Resolve                        // end or forget records
)

// visitor is the sender of a request.
type visitor struct {
	who string
	may Permission
}

type visitorKey struct{}

// visitorOf returns the sender of a request, who has no permissions before Access is
// called.
func visitorOf(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
}

// may reports whether the sender of a request has a permission.
func may(r *http.Request, p Permission) bool { return visitorOf(r).may&p != 0 }

// protect sets the security headers for browsers, and refuses requests without a
// permission and writes from another site's page.
func (s *site) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, field := range [...][2]string{
			{"Content-Security-Policy", contentPolicy},
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
			s.fail(w, r, http.StatusMisdirectedRequest, "The console does not answer under this host name. A service lists its names in console.Config.Hosts; the program answers under the address of --listen.")
			return
		}
		if r.URL.Path == "/style.css" { // also of the page that says 403
			serveStyle(w)
			return
		}
		var v visitor
		if v.who, v.may = s.access(r); v.who == "" && v.may != 0 {
			v.may = Look
		}
		if v.may == 0 {
			s.fail(w, r, http.StatusForbidden, "You may not look at these records. Nothing was changed.")
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), visitorKey{}, v))
		if err := s.origin.Check(r); err != nil {
			s.fail(w, r, http.StatusForbidden, otherSite(r))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// otherSite explains why a form is refused. It names the field to configure only if the
// browser sends no Sec-Fetch-Site: others know whether the form is of another site.
func otherSite(r *http.Request) string {
	message := "The request came from the page of another site. Nothing was changed."
	if origin := r.Header.Get("Origin"); r.Header.Get("Sec-Fetch-Site") == "" && origin != "null" {
		message += " If " + origin + " is the address of this console, a proxy in front of it rewrites the Host field to " + r.Host +
			": let the proxy keep it, or set console.Config.TrustedOrigins to " + `[]string{"` + origin + `"}.`
	}
	return message
}

func serveStyle(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(styleSheet)
}

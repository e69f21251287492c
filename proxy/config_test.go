package proxy_test

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/proxy"
)

func TestParseNamesTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"upstream = 'http://a'\nscop = 'unscoped'\n\n[default]\nrequird = true\n": "2: unknown field scop\n5: unknown field default.requird",
		"[[route]]\nmatch = ['/a']\nexpires = 1\n":                                "3: unknown field route.expires",
		"upstream = 'ftp://a'\n":                                                  "1: ",
		"upstream = 'http://a/b'\n":                                               "1: ",
		"\nscope = 'header:'\n":                                                   "2: ",
		"\nscope = 'header:a:b'\n":                                                "2: ",
		"\nscope = 'header:host'\n":                                               "2: ",
		"\nscope = 'unverified-claim:a b'\n":                                      "2: ",
		"\n\nscope = 'everyone'\n":                                                "3: ",
		"[default]\nretention = '3 days'\n":                                       "2: ",
		"trusted_addresses = ['10.0.0.0/99']\n":                                   "1: ",
		"[default]\nrequired = 'yes'\n":                                           "2: ",
		"upstream = \n":                                                           "1: ",
	} {
		_, err := proxy.Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestNewNamesTheInvalidField(t *testing.T) {
	t.Parallel()
	const head = "upstream = 'http://a'\nscope = 'unscoped'\n"
	for text, want := range map[string]string{
		"scope = 'unscoped'":                    "upstream is missing",
		"upstream = 'http://a'":                 `policy "default": the scope is missing`,
		head + "[default]\nmatch = ['/']":       "default.match",
		head + "body_timeout = '-1s'":           "body_timeout",
		head + "max_requests = -1":              "max_requests",
		head + "[default]\npreset = 'once'":     `policy "default": preset is "once", want at-most-once or recoverable`,
		head + "[default]\nfingerprint = 'md5'": `policy "default": fingerprint is "md5", want bytes, json or none`,
		head + "[[route]]":                      `policy "route-1": match is empty`,
		head + "[[route]]\nmatch = ['FOO']":     `pattern "FOO"`,
		head + "[[route]]\nname = 'x'\nmatch = ['/a']\n[[route]]\nname = 'x'\nmatch = ['/b']": `two policies have the name "x"`,
		head + "[[route]]\nmatch = ['/a']\n[[route]]\nmatch = ['/a']":                         `policy "route-2"`,
		head + "[[route]]\nmatch = ['/ab']\n[[route]]\nmatch = ['/%61b']":                     `policy "route-2"`,
		head + "[[route]]\nmatch = ['/a%2fb']":                                                `pattern "/a%2fb", which no request in normal form matches`,
		head + "[[route]]\nmatch = ['POST /a/../b']":                                          `pattern "POST /a/../b", which`,
		head + "[[route]]\nmatch = ['POST Own.example/a']":                                    `pattern "POST Own.example/a", which`,
		head + "[[route]]\nmatch = ['own.example:443/a']":                                     `pattern "own.example:443/a", which`,
		head + "[[route]]\nmatch = ['POST /a', 'PUT /a']":                                     "match has PUT, which methods does not list",
		head + "[[route]]\nmatch = ['PATCH h/a']\nmethods = ['POST']":                         "match has PATCH, which methods does not list",
		head + "[[route]]\nmatch = ['GET /a']":                                                "match has GET, which methods does not list",
		head + "[[route]]\nmatch = ['/a']\nunkeyed = true\nretention = '-1s'":                 "unkeyed and other settings",
		head + "[default]\nunkeyed = true\nrequired = true":                                   "unkeyed and other settings",
		head + "[default]\nfail_open = true":                                                  "FailOpen",
		head + "[default]\nmethods = ['get']":                                                 "Methods",
		head + "[default]\nheaders = ['a b']":                                                 "Key",
		head + "[default]\nscope = 'header:X-Forwarded-User'":                                 "X-Forwarded-User does not reach the service",
		head + "[default]\nmax_request_body = 300000000":                                      "max_request_body is 300000000, above",
		head + "[[route]]\nmatch = ['/a', 'POST /b', 'PATCH /b']":                             "",
		head + "[[route]]\nmatch = ['PUT /a', 'DELETE\t/a']\nmethods = ['PUT', 'DELETE']":     "",
		head + "[[route]]\nmatch = ['GET /a']\nname = 'x'\nunkeyed = true":                    "",
	} {
		c, err := proxy.Parse([]byte(text))
		must(t, err)
		if _, err := proxy.New(memstore.New(), c, proxy.Options{}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

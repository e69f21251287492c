package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-go/reprise/proxy"

	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// findClient has the flags of find that describe the client of a proxy.
type findClient struct {
	file           string
	fields, claims []string
	certificate    string
}

func (f *findClient) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "config", "", "the `file` of the proxy, in place of --scope and --endpoint")
	fs.StringArrayVar(&f.fields, "field", nil, "a field of the client's requests, as \"`NAME: VALUE`\"; without the value it is asked for; may be repeated")
	fs.StringArrayVar(&f.claims, "claim", nil, "a claim of the client's token, as `NAME=VALUE`; a number is NAME:=VALUE; may be repeated")
	fs.StringVar(&f.certificate, "certificate", "", "the `file` with the client's certificate (PEM)")
}

func (f *findClient) described() bool {
	return len(f.fields) > 0 || len(f.claims) > 0 || f.certificate != ""
}

// spaces returns where the policies of the file look for the keys of a client, and asks
// for the values that are missing, and for the key. It warns of policies that look
// elsewhere. first is for noRecord.
func (c *session) spaces(ctx context.Context, f *findClient) (spaces []proxy.KeySpace, key, first string, err error) {
	config, err := proxy.Load(f.file)
	if err != nil {
		return nil, "", "", findings("%w", err)
	}
	r, asked, err := f.request()
	if err != nil {
		return nil, "", "", err
	}
	if key, err = c.askFor(ctx, r.Header, asked); err != nil {
		return nil, "", "", err
	}
	spaces, unknown, err := config.KeySpaces(r)
	switch {
	case err != nil:
		return nil, "", "", findings("%s: %w", f.file, err)
	case len(spaces) == 0 && len(unknown) == 0:
		return nil, "", "", findings("%s: no policy has keys", f.file)
	case len(spaces) == 0:
		return nil, "", "", usage("the scope of the client is not known; pass it by --field, --claim or --certificate: %s", strings.Join(unknown, ", "))
	}
	first = "is --config the file that the proxy had, are the values those that the client sent, and "
	if len(f.claims) > 0 && !slices.ContainsFunc(f.claims, func(claim string) bool { return strings.HasPrefix(claim, "iss=") }) {
		c.err.Line(ui.Paint(ui.Warn, "!"), " the token of --claim has no issuer, which is a part of the scope: pass --claim iss=… if the client's has one")
	}
	if len(unknown) > 0 {
		c.err.Line(ui.Paint(ui.Warn, "!"), " not looked at, because the client's scope is not known there: ", strings.Join(unknown, ", "))
		first = "is it one of the policies that were not looked at, " + first
	}
	return spaces, key, first, nil
}

// request returns a request with what the flags have, and the fields that lack a value.
func (f *findClient) request() (r *http.Request, asked []string, err error) {
	r = &http.Request{Header: http.Header{}}
	for _, field := range f.fields {
		name, value, complete := strings.Cut(field, ":")
		name = strings.TrimSpace(name)
		switch {
		case !complete:
			asked = append(asked, name)
		case secretName.MatchString(name):
			return nil, nil, usage("--field takes no value of %s: others can see a command line. Leave it out, and type it when asked, or pipe it into the program", name)
		default:
			r.Header.Add(name, strings.TrimSpace(value))
		}
	}
	if len(f.claims) > 0 {
		token, err := tokenOf(f.claims)
		if err != nil {
			return nil, nil, err
		}
		r.Header.Add("Authorization", "Bearer "+token)
	}
	if f.certificate != "" {
		if r.TLS, err = presented(f.certificate); err != nil {
			return nil, nil, err
		}
	}
	return r, asked, nil
}

// secretName matches the names of fields that have credentials.
var secretName = regexp.MustCompile("(?i)auth|cookie|key|token|secret|session")

// askFor asks for the values of fields, and returns the key, for which it asks last.
// Where standard input is not a terminal, each is a line of it.
func (c *session) askFor(ctx context.Context, h http.Header, names []string) (key string, err error) {
	const longest = 64 << 10 // of a field
	if c.prompt.Terminal() != nil {
		for _, name := range names {
			value, err := c.secret(ctx, name+" (not shown): ", longest)
			if err != nil {
				return "", err
			}
			h.Add(name, strings.TrimSpace(value))
		}
		return c.secret(ctx, keyQuestion, maxKey)
	}
	text, err := c.secret(ctx, keyQuestion, maxKey+len(names)*longest)
	if err != nil {
		return "", err
	}
	lines := strings.SplitN(text, "\n", len(names)+1)
	if len(lines) <= len(names) {
		return "", usage("standard input has too few lines: want %d, the values of --field and the key", len(names)+1)
	}
	for i, name := range names {
		h.Add(name, strings.TrimSpace(lines[i]))
	}
	return lines[len(names)], nil
}

// tokenOf returns a token without a signature, which the scope of a claim does not need.
func tokenOf(claims []string) (string, error) {
	values := map[string]any{}
	for _, claim := range claims {
		name, value, ok := strings.Cut(claim, "=")
		if !ok || name == "" {
			return "", usage("--claim is not NAME=VALUE")
		}
		if number, isNumber := strings.CutSuffix(name, ":"); isNumber {
			values[number] = json.Number(value)
		} else {
			values[name] = value
		}
	}
	payload, err := json.Marshal(values)
	if err != nil {
		return "", usage("--claim: %w", err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(payload) + ".", nil
}

// presented returns the state of a connection whose client has shown the certificate in a
// file.
func presented(file string) (*tls.ConnectionState, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator's own file
	if err != nil {
		return nil, usage("--certificate: %w", err)
	}
	block, rest := pem.Decode(text)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, usage("--certificate: %s has no certificate in PEM", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, usage("--certificate: %w", err)
	}
	chain := []*x509.Certificate{certificate}
	return &tls.ConnectionState{PeerCertificates: chain, VerifiedChains: [][]*x509.Certificate{chain}}, nil
}

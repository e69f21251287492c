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
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprise-go/reprise/proxy"
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
// for the values that are missing, and for the key.
func (c *session) spaces(ctx context.Context, f *findClient) (spaces []proxy.KeySpace, key string, err error) {
	config, err := proxy.Load(f.file)
	if err != nil {
		return nil, "", findings("%w", err)
	}
	r := &http.Request{Header: http.Header{}}
	var asked []string
	for _, field := range f.fields {
		name, value, complete := strings.Cut(field, ":")
		switch {
		case !complete:
			asked = append(asked, name)
		case strings.EqualFold(name, "Authorization"):
			return nil, "", usage("--field takes no value of Authorization: others can see a command line. Leave it out, and type it when asked, or pipe it into the program")
		default:
			r.Header.Add(name, strings.TrimSpace(value))
		}
	}
	if len(f.claims) > 0 {
		token, err := tokenOf(f.claims)
		if err != nil {
			return nil, "", err
		}
		r.Header.Add("Authorization", "Bearer "+token)
	}
	if f.certificate != "" {
		if r.TLS, err = presented(f.certificate); err != nil {
			return nil, "", err
		}
	}
	if key, err = c.askFor(ctx, r.Header, asked); err != nil {
		return nil, "", err
	}
	if spaces, err = config.KeySpaces(r); err != nil {
		return nil, "", usage("%w; pass it by --field, --claim or --certificate", err)
	}
	if len(spaces) == 0 {
		return nil, "", findings("%s: no policy has keys", f.file)
	}
	return spaces, key, nil
}

// askFor asks for the values of fields, and returns the key, for which it asks last. Where
// standard input is not a terminal, each is a line of it.
func (c *session) askFor(ctx context.Context, h http.Header, names []string) (key string, err error) {
	if c.prompt.Terminal() != nil {
		for _, name := range names {
			value, err := c.secret(ctx, name+" (not shown): ")
			if err != nil {
				return "", err
			}
			h.Add(name, value)
		}
		return c.secret(ctx, keyQuestion)
	}
	text, err := c.secret(ctx, keyQuestion)
	if err != nil {
		return "", err
	}
	lines := strings.SplitN(text, "\n", len(names)+1)
	if len(lines) <= len(names) {
		return "", usage("standard input has %d lines, want %d: the values of --field, and the key", len(lines), len(names)+1)
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
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, usage("--certificate: %s has no PEM block", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, usage("--certificate: %w", err)
	}
	chain := []*x509.Certificate{certificate}
	return &tls.ConnectionState{PeerCertificates: chain, VerifiedChains: [][]*x509.Certificate{chain}}, nil
}

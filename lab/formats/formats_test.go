// Package formats compares the test vectors of docs/reference/formats.md with the code
// that makes the bytes.
package formats

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// vectors is the file beside the page.
type vectors struct {
	IDs []struct {
		Scope, Endpoint, Key, ID string
	}
	Fingerprints []struct {
		Method, Path, Query, ContentType, Body, Key string
		Default, CanonicalJSON                      string
	}
	DownstreamKeys []struct {
		ID, Fingerprint, Name, Key string
	}
	Responses []struct {
		Status      int
		ContentType string
		Body        string
		Hex         string
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/vectors.json")
	labtest.Must(t, err)
	var v vectors
	labtest.Must(t, json.Unmarshal(text, &v))
	if len(v.IDs) < 2 || len(v.Fingerprints) < 2 || len(v.DownstreamKeys) < 1 || len(v.Responses) < 2 {
		t.Fatalf("the file lacks vectors: %+v", v)
	}
	for _, c := range v.IDs {
		same(t, "ID of "+c.Key, store.DeriveID(c.Scope, c.Endpoint, c.Key).String(), c.ID)
	}
	for _, c := range v.Fingerprints {
		r := &protocol.Request{Method: c.Method, Path: c.Path, RawQuery: c.Query, Header: http.Header{"Content-Type": {c.ContentType}}}
		for name, f := range map[string]struct {
			of   protocol.Fingerprinter
			want string
		}{"DefaultFingerprint": {protocol.DefaultFingerprint, c.Default}, "CanonicalJSON": {protocol.CanonicalJSON, c.CanonicalJSON}} {
			got, err := f.of(r, c.Key, []byte(c.Body))
			labtest.Must(t, err)
			same(t, name+" of "+c.Body, hex.EncodeToString(got[:]), f.want)
		}
	}
	for _, c := range v.DownstreamKeys {
		id, err := store.ParseID(c.ID)
		labtest.Must(t, err)
		sum, err := hex.DecodeString(c.Fingerprint)
		labtest.Must(t, err)
		record := store.Record{ID: id, Fingerprint: store.Fingerprint(sum)}
		same(t, "downstream key "+c.Name, record.Key(c.Name), c.Key)
	}
	for _, c := range v.Responses {
		got, err := operate.Encode(protocol.Response{
			Status: c.Status, Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: c.ContentType}), Body: []byte(c.Body),
		})
		labtest.Must(t, err)
		same(t, "response "+c.Body, hex.EncodeToString(got), c.Hex)
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

package operate_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

func TestEncodeRefusesUnservableResponses(t *testing.T) {
	t.Parallel()
	field := func(name, value string) protocol.Response {
		return protocol.Response{Status: 201, Header: protocol.NewHeader(protocol.Field{Name: name, Value: value})}
	}
	trailer := func(f protocol.Field) protocol.Response {
		return protocol.Response{Status: 200, Trailer: protocol.NewHeader(f)}
	}
	many := make([]protocol.Field, 65)
	for i := range many {
		many[i] = protocol.Field{Name: "X", Add: i > 0}
	}
	for what, c := range map[string]struct {
		r    protocol.Response
		want string // in the error
	}{
		"no status":                          {protocol.Response{}, "status 0"},
		"an interim status":                  {protocol.Response{Status: 103}, "status 103"},
		"a status of four digit":             {protocol.Response{Status: 1000}, "status 1000"},
		"a body of 204":                      {protocol.Response{Status: 204, Body: []byte("x")}, "status 204 has no body"},
		"a body of 304":                      {protocol.Response{Status: 304, Body: []byte("x")}, "status 304 has no body"},
		"a body of 64 MiB":                   {protocol.Response{Status: 200, Body: make([]byte, 64<<20)}, "67108864 bytes"},
		"a name with a space":                {field("Content Type", "x"), `"Content Type"`},
		"no name":                            {field("", "x"), `""`},
		"a value with LF":                    {field("X", "a\nb"), `"X"`},
		"Content-Length":                     {field("content-length", "3"), "content-length is never kept"},
		"Set-Cookie":                         {field("Set-Cookie", "a=b"), "Set-Cookie is never kept"},
		"Connection":                         {field("Connection", "close"), "Connection is never kept"},
		"a control field":                    {field("Idempotent-Replayed", "true"), "never kept"},
		"65 fields":                          {protocol.Response{Status: 200, Header: protocol.NewHeader(many...)}, "more than 64"},
		"16 KiB of values, and a name":       {field("X", strings.Repeat("v", 16<<10)), "16384 bytes"},
		"more than 16 bits can say":          {field("X", strings.Repeat("v", 1<<16)), "16384 bytes"},
		"a removal with a value":             {protocol.Response{Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "X", Value: "v", Remove: true})}, "has a value"},
		"a field that is left out and stays": {protocol.Response{Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "Date", Suppress: true})}, "not removed"},
		"a removed control field": {
			protocol.Response{Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "Idempotency-Status", Remove: true})}, "never kept",
		},
		"a removed trailer":   {trailer(protocol.Field{Name: "X", Remove: true}), "is removed"},
		"a trailer with a CR": {trailer(protocol.Field{Name: "X", Value: "\r"}), `"X"`},
		"a date as a trailer": {trailer(protocol.Field{Name: "Date", Value: "x"}), "never kept"},
	} {
		payload, err := operate.Encode(c.r)
		if payload != nil || !errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d bytes, error %v; want ErrInvalid with %q", what, len(payload), err, c.want)
		}
	}
}

func TestDecodeOfAPartialRecord(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		captured protocol.Captured
		want     error
	}{
		"whole":    {protocol.Captured{Status: 201, Body: []byte("answer")}, nil},
		"oversize": {protocol.Captured{Status: 201, Oversize: true}, operate.ErrBodyOmitted},
		"cut":      {protocol.Captured{Status: 201, Cut: true}, operate.ErrResultUnavailable},
	} {
		st := memstore.New()
		a := must(protocol.New(st, protocol.Config{Preset: reprise.AtMostOnce})).Admit(t.Context(), nextRequest(), scope)
		a.Exchange.Before(func(func(string, string) bool) {})
		a.Exchange.After(func(yield func(string, string) bool) { yield("Content-Type", "text/plain") })
		a.Exchange.Finish(c.captured)
		a.Exchange.Close()
		rec := must(st.Inspect(t.Context(), store.DeriveID("tenant", "", "k")))
		got, err := operate.Decode(rec.Payload)
		kind, _ := got.Header.Get("Content-Type")
		switch {
		case !errors.Is(err, c.want):
			t.Errorf("%s: %v, want %v", what, err, c.want)
		case errors.Is(c.want, operate.ErrResultUnavailable):
			if got.Header.Len() != 0 || got.Body != nil {
				t.Errorf("%s: %+v", what, got)
			}
		case got.Status != 201 || kind != "text/plain" || (string(got.Body) == "answer") != (c.want == nil):
			t.Errorf("%s: %+v", what, got)
		}
	}
	if _, err := operate.Decode([]byte(`{"id":7}`)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("JSON is decoded: %v", err)
	}
}

func TestDecodeNamesTheBlob(t *testing.T) {
	t.Parallel()
	kept := record.Response[record.Field]{
		Status: 201, Fields: []record.Field{{Name: "Content-Type", Value: "text/plain"}}, Flags: record.Offloaded,
		Blob: record.Blob{SHA256: [32]byte{1}, Size: 5000, Day: 20_000},
	}
	r, err := operate.Decode(record.Append(nil, &kept))
	var elsewhere *operate.OffloadedError
	if !errors.As(err, &elsewhere) || elsewhere.Blob.Name() != kept.Blob.Name() || elsewhere.Blob.Size != 5000 || !strings.Contains(err.Error(), "5000 bytes") {
		t.Fatalf("Decode: %v, want the blob %v", err, kept.Blob.Name())
	}
	if r.Status != 201 || r.Length != 5000 || len(r.Body) > 0 || r.Header.Len() != 1 {
		t.Errorf("decoded %+v", r)
	}
	if _, err := operate.Encode(protocol.Response{Status: 200, Stream: io.NopCloser(strings.NewReader("x")), Length: 1}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Encode of a stream: %v", err)
	}
}

func sameResponse(a, b protocol.Response) bool {
	return a.Status == b.Status && bytes.Equal(a.Body, b.Body) && slices.Equal(slices.Collect(a.Header.All()), slices.Collect(b.Header.All())) &&
		slices.Equal(slices.Collect(a.Trailer.All()), slices.Collect(b.Trailer.All()))
}

// FuzzEncode encodes any response: an accepted one is decoded unchanged, and encoded
// again as the same bytes.
func FuzzEncode(f *testing.F) {
	f.Add(201, "Content-Type", "application/json", "Link", "</a>", true, false, []byte(`{"id":7}`))
	f.Add(204, "X", "", "Set-Cookie", "a=b", false, false, []byte{})
	f.Add(99, "X\r\n", "\x00", "", "", false, true, []byte("x"))
	f.Add(200, "X", "a", "X", "", false, true, []byte("x"))
	f.Fuzz(func(t *testing.T, status int, name1, value1, name2, value2 string, add, remove bool, body []byte) {
		r := protocol.Response{
			Status: status, Body: body,
			Header:  protocol.NewHeader(protocol.Field{Name: name1, Value: value1}, protocol.Field{Name: name2, Value: value2, Add: add, Remove: remove}),
			Trailer: protocol.NewHeader(protocol.Field{Name: name2, Value: value1}),
		}
		payload, err := operate.Encode(r)
		if err != nil {
			if !errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrCorrupt) || payload != nil {
				t.Fatalf("%d bytes, %v", len(payload), err)
			}
			return
		}
		got, err := operate.Decode(payload)
		if remove {
			r.Header = got.Header // Add is meaningless for a removal
		}
		if err != nil || !sameResponse(got, r) {
			t.Fatalf("encoded %+v, decoded %+v, %v", r, got, err)
		}
		if again, err := operate.Encode(got); err != nil || !bytes.Equal(again, payload) {
			t.Fatalf("%x is encoded again as %x, %v", payload, again, err)
		}
	})
}

// The bounds of a kept response are inclusive.
func TestEncodeBoundsAreInclusive(t *testing.T) {
	t.Parallel()
	many := make([]protocol.Field, 64)
	for i := range many {
		many[i] = protocol.Field{Name: "X", Value: strings.Repeat("v", 255), Add: i > 0}
	}
	for what, r := range map[string]protocol.Response{
		"the first status":       {Status: 200},
		"the last status":        {Status: 999},
		"204 without a body":     {Status: 204},
		"304 without a body":     {Status: 304},
		"a body of 63 MiB":       {Status: 200, Body: make([]byte, 63<<20)},
		"64 fields of 16 KiB":    {Status: 200, Header: protocol.NewHeader(many...)},
		"a field to leave out":   {Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "Date", Remove: true, Suppress: true})},
		"a field to remove":      {Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "X", Remove: true})},
		"a cookie to remove":     {Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "Set-Cookie", Remove: true})},
		"a field of no value":    {Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "X"})},
		"a value that begins so": {Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "X", Value: "\x01"})},
	} {
		payload, err := operate.Encode(r)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got, err := operate.Decode(payload); err != nil || !sameResponse(got, r) {
			t.Errorf("%s: %+v, %v", what, got.Status, err)
		}
	}
}

// An unreadable record has no annotation.
func TestAnnotationOfAnUnreadableRecordIsEmpty(t *testing.T) {
	t.Parallel()
	for what, payload := range map[string][]byte{
		"nothing": nil, "garbage": []byte("\x01garbage of some length"), "half an envelope": {0x81}, "an envelope of another version": []byte("\x82 of some length"),
	} {
		if note := operate.Annotation(payload); note != "" {
			t.Errorf("%s: %q", what, note)
		}
	}
}

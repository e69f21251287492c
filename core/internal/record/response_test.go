package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

type stored = Response[Field]

var sampleFields = []Field{
	{Name: "Content-Type", Value: "application/json"},
	{Name: "Link", Value: "</a>"},
	{Name: "Link", Value: "</b>", Add: true},
	{Name: "X-Empty", Value: ""},
}

// goldenStored were computed by an independent program, from
// docs/engineering/adr/0003-stored-response.md. A change of one of them makes the records
// of running deployments unreadable.
var goldenStored = []struct {
	name   string
	stored stored
	hex    string
}{
	{
		"a created resource",
		stored{Status: 201, Fields: []Field{
			{Name: "Content-Type", Value: "application/json"}, {Name: "Link", Value: "</a>"}, {Name: "Link", Value: "</b>", Add: true},
		}, Body: []byte(`{"id":7}`)},
		"010000c900030000003b0000000800000c0010436f6e74656e742d547970656170706c69636174696f6e2f6a736f6e" +
			"00000400044c696e6b3c2f613e01000400044c696e6b3c2f623e7b226964223a377d543a60c6",
	},
	{"no content", stored{Status: 204}, "010000cc000000000000000000004cbeb062"},
	{
		"omitted body",
		stored{Status: 200, Flags: Omitted, Fields: []Field{{Name: "Content-Type", Value: "text/csv"}}},
		"010100c80001000000190000000000000c0008436f6e74656e742d54797065746578742f6373766e447345",
	},
	{
		"trailers, and a field that is removed",
		stored{
			Status: 200, Body: []byte("\x00\x01"),
			Fields:   []Field{{Name: "Content-Type", Value: "application/grpc"}, {Name: "X-Powered-By", Remove: true}},
			Trailers: []Field{{Name: "Grpc-Status", Value: "0"}, {Name: "X-Sum", Value: "a"}, {Name: "X-Sum", Value: "b", Add: true}},
		},
		"010000c80005000000590000000200000c0010436f6e74656e742d547970656170706c69636174696f6e2f6772706302000c" +
			"0000582d506f77657265642d427903000b0001477270632d537461747573300300050001582d53756d610400050001582d53756d620001cb7db16b",
	},
	{
		"a field that the server leaves out",
		stored{Status: 204, Fields: []Field{{Name: "Date", Remove: true, Suppress: true}}},
		"010000cc00010000000900000000050004000044617465ea194051",
	},
	{"cut short", stored{Status: 500, Flags: Cut}, "010201f40000000000000000000056e4b6ef"},
	{
		"offloaded body",
		stored{
			Status: 200, Flags: Offloaded, Fields: []Field{{Name: "Content-Type", Value: "text/csv"}},
			Blob: Blob{SHA256: sha256.Sum256([]byte("The quick brown fox jumps over the lazy dog")), Size: 43, Day: 20_779},
		},
		"010800c80001000000190000002d00000c0008436f6e74656e742d54797065746578742f637376" +
			"01000000000000002bd7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e5920000512bb00551b1",
	},
	{
		"an annotation",
		stored{
			Status: 201, Fields: []Field{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(`{"id":7}`),
			Annotation: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
		"020000c9000100000021000000083730302d34626639326633353737623334646136613363653932396430653065343733362d303066303637616130626139303262372d3031" +
			"00000c0010436f6e74656e742d547970656170706c69636174696f6e2f6a736f6e7b226964223a377dd4c46130",
	},
}

func TestStoredGoldenVectors(t *testing.T) {
	t.Parallel()
	for _, c := range goldenStored {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := must(hex.DecodeString(c.hex))
			if got := Append(nil, &c.stored); !bytes.Equal(got, want) {
				t.Errorf("encoded\n%x, want\n%x", got, want)
			}
			checkDecoded(t, want, &c.stored)
		})
	}
}

// fieldsOf returns the fields of a section.
func fieldsOf(s Section) (list []Field) {
	for s.Len() > 0 {
		var f Field
		f, s = s.Next()
		list = append(list, f)
	}
	return list
}

// checkDecoded decodes payload and compares the result with the original.
func checkDecoded(t *testing.T, payload []byte, want *stored) {
	t.Helper()
	got, err := Decode[Field](payload)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if got.Annotation != want.Annotation {
		t.Errorf("decoded the annotation %q, want %q", got.Annotation, want.Annotation)
	}
	if got.Status != want.Status || got.Flags != want.Flags || !bytes.Equal(got.Body, want.Body) {
		t.Errorf("decoded status %d, flags %b, body %q; want %d, %b, %q", got.Status, got.Flags, got.Body, want.Status, want.Flags, want.Body)
	}
	if got.Blob != want.Blob {
		t.Errorf("decoded the blob %+v, want %+v", got.Blob, want.Blob)
	}
	if cap(got.Body) != len(got.Body) {
		t.Errorf("appending to a body of %d bytes would write into the payload", len(got.Body))
	}
	if fields := fieldsOf(got.Header); !slices.Equal(fields, want.Fields) || got.Header.Len() != len(want.Fields) {
		t.Errorf("decoded fields %v, want %v", fields, want.Fields)
	}
	if trailers := fieldsOf(got.Trailer); !slices.Equal(trailers, want.Trailers) || got.Trailer.Len() != len(want.Trailers) {
		t.Errorf("decoded trailers %v, want %v", trailers, want.Trailers)
	}
}

// The longest annotation stays.
func TestR35BodyIsLeftOutWhereTheFlagsDenyIt(t *testing.T) {
	t.Parallel()
	for _, flags := range []Flags{Omitted, Cut, Omitted | Cut} {
		s := stored{Status: 200, Flags: flags, Body: []byte("secret"), Annotation: strings.Repeat("~", maxAnnotation)}
		payload, ok := bytes.CutPrefix(Append([]byte("before"), &s), []byte("before"))
		if !ok || bytes.Contains(payload, s.Body) || len(payload) != s.Size() {
			t.Errorf("flags %b: the body is in the payload", flags)
		}
		s.Body = nil
		checkDecoded(t, payload, &s)
	}
}

// withSum appends the checksum that content needs to be looked at any further.
func withSum(content []byte) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(content), crc32.Checksum(content, castagnoli))
}

// refused are payloads with a correct checksum, as an attacker with access to the store
// could write them.
func refused() map[string][]byte {
	head := func(flags byte, status, fields uint16, section, body uint32) []byte {
		b := []byte{version, flags}
		b = binary.BigEndian.AppendUint16(b, status)
		b = binary.BigEndian.AppendUint16(b, fields)
		b = binary.BigEndian.AppendUint32(b, section)
		return binary.BigEndian.AppendUint32(b, body)
	}
	with := func(fields uint16, section string) []byte {
		return withSum(append(head(0, 200, fields, uint32(len(section)), 0), section...))
	}
	field := func(name, value string) string {
		return string(appendField(nil, Field{Name: name, Value: value}, kindReplace))
	}
	ref := func(version byte, size uint64, day uint32) []byte {
		b := binary.BigEndian.AppendUint64([]byte{version}, size)
		return binary.BigEndian.AppendUint32(append(b, make([]byte, 32)...), day)
	}
	refers := func(flags Flags, status uint16, ref []byte) []byte {
		return withSum(append(head(byte(flags), status, 0, 0, uint32(len(ref))), ref...))
	}
	many := strings.Repeat(field("X", ""), MaxFields+1)
	return map[string][]byte{
		"empty":                     {},
		"version 0":                 withSum(append([]byte{0}, head(0, 200, 0, 0, 0)[1:]...)),
		"version 3":                 withSum(append([]byte{3}, head(0, 200, 0, 0, 0)[1:]...)),
		"no annotation":             withSum(append([]byte{2}, head(0, 200, 0, 0, 0)[1:]...)),
		"an empty annotation":       withSum(append([]byte{2}, append(head(0, 200, 0, 0, 0)[1:], 0)...)),
		"a cut annotation":          withSum(append([]byte{2}, append(head(0, 200, 0, 0, 0)[1:], 2, 'a')...)),
		"an annotation with LF":     withSum(append([]byte{2}, append(head(0, 200, 0, 0, 0)[1:], 1, '\n')...)),
		"version only":              {version},
		"sum only":                  withSum([]byte{version}),
		"a short head":              withSum(head(0, 200, 0, 0, 0)[:headSize-1]),
		"the flag that is not used": withSum(head(1<<2, 200, 0, 0, 0)),
		"offloaded":                 withSum(head(byte(Offloaded), 200, 0, 0, 0)),
		"another reference":         refers(Offloaded, 200, ref(2, 1, 0)),
		"a short reference":         refers(Offloaded, 200, ref(1, 1, 0)[:blobSize-1]),
		"a long reference":          refers(Offloaded, 200, append(ref(1, 1, 0), 0)),
		"a blob of no bytes":        refers(Offloaded, 200, ref(1, 0, 0)),
		"a blob of 2^63 bytes":      refers(Offloaded, 200, ref(1, 1<<63, 0)),
		"a blob over the limit":     refers(Offloaded, 200, ref(1, MaxBlob+1, 0)),
		"a blob of the year 10000":  refers(Offloaded, 200, ref(1, 1, lastDay+1)),
		"a blob for 204":            refers(Offloaded, 204, ref(1, 1, 0)),
		"offloaded and omitted":     refers(Offloaded|Omitted, 200, ref(1, 1, 0)),
		"offloaded and cut":         refers(Offloaded|Cut, 200, ref(1, 1, 0)),
		"offloaded with a trailer":  withSum(append(append(head(byte(Offloaded), 200, 1, 6, blobSize), "\x03\x00\x01\x00\x00X"...), ref(1, 1, 0)...)),
		"an unknown flag":           withSum(head(0x80, 200, 0, 0, 0)),
		"status 0":                  withSum(head(0, 0, 0, 0, 0)),
		"status 199":                withSum(head(0, 199, 0, 0, 0)),
		"status 1000":               withSum(head(0, 1000, 0, 0, 0)),
		"a longer section":          withSum(head(0, 200, 0, 1, 0)),
		"a longer body":             withSum(head(0, 200, 0, 0, 1)),
		"lengths that overflow":     withSum(append(head(0, 200, 0, 0xffffffff, 2), "x"...)),
		"lengths of four GiB":       withSum(head(0, 200, 64, 0xffffffff, 0xffffffff)),
		"trailing bytes":            withSum(append(head(0, 200, 0, 0, 0), "x"...)),
		"an omitted body":           withSum(append(head(byte(Omitted), 200, 0, 0, 1), "x"...)),
		"a body that was cut":       withSum(append(head(byte(Cut), 200, 0, 0, 1), "x"...)),
		"too many fields":           with(MaxFields+1, many),
		"fewer fields than said":    with(2, field("X", "")),
		"more fields than said":     with(1, field("X", "")+field("X", "")),
		"65,535 fields":             with(0xffff, ""),
		"a section without fields":  with(0, "x"),
		"a section that is large":   with(1, field("X", strings.Repeat("v", MaxHeaderBytes))),
		"half a field head":         with(1, field("X", "")[:fieldSize-1]),
		"half a field":              with(1, field("X", "value")[:fieldSize+3]),
		"a field of another kind":   with(1, "\x06"+field("X", "")[1:]),
		"a removal with a value":    with(1, "\x02"+field("X", "v")[1:]),
		"one that is left out":      with(1, "\x05"+field("X", "v")[1:]),
		"a field after a trailer":   with(2, "\x03"+field("X", "")[1:]+field("Y", "")),
		"a name that is empty":      with(1, field("", "value")),
		"a name that ends the line": with(1, field("X\r\nY", "value")),
		"a value with CR":           with(1, field("X", "a\rb")),
		"a value with LF":           with(1, field("X", "a\nb")),
		"a value with NUL":          with(1, field("X", "a\x00b")),
		"a length":                  with(1, field("content-length", "5")),
		"a coding":                  with(1, field("Transfer-Encoding", "chunked")),
		"a hop":                     with(1, field("connection", "X")),
		"a protocol":                with(1, field("UPGRADE", "h2c")),
		"a list of trailers":        with(1, field("Trailer", "X")),
		"a connection that stays":   with(1, field("Keep-Alive", "timeout=5")),
		"codings that are taken":    with(1, field("te", "trailers")),
		"a cookie":                  with(1, field("Set-Cookie", "session=1")),
		"a cookie in the trailers":  with(1, "\x03"+field("set-cookie", "session=1")[1:]),
	}
}

func TestR42UnreadablePayloadIsCorrupt(t *testing.T) {
	t.Parallel()
	for name, payload := range refused() {
		if _, err := Decode[Field](payload); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

func TestR42EveryDamageIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range goldenStored {
		payload := Append(nil, &c.stored)
		for n := range payload {
			if _, err := Decode[Field](payload[:n]); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s, cut to %d bytes: %v, want ErrCorrupt", c.name, n, err)
			}
			for flip := 1; flip < 256; flip++ {
				damaged := slices.Clone(payload)
				damaged[n] ^= byte(flip)
				if _, err := Decode[Field](damaged); !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("%s, byte %d xor %#02x: %v, want ErrCorrupt", c.name, n, flip, err)
				}
			}
		}
		if _, err := Decode[Field](append(payload, 0)); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s, a byte longer: %v, want ErrCorrupt", c.name, err)
		}
	}
}

func TestP10StoredResponsesAreCodedWithoutAllocations(t *testing.T) {
	s := stored{Status: 201, Fields: sampleFields, Body: make([]byte, 64<<10)}
	dst := make([]byte, 0, s.Size())
	if allocs := testing.AllocsPerRun(20, func() { dst = Append(dst[:0], &s) }); allocs != 0 {
		t.Errorf("%v allocations to encode into a buffer with room, want 0", allocs)
	}
	payloads := refused()
	payloads["valid"] = dst
	payloads["a wrong checksum"] = append(slices.Clone(dst[:len(dst)-1]), dst[len(dst)-1]^1)
	for name, payload := range payloads {
		allocs := testing.AllocsPerRun(20, func() {
			if got, err := Decode[Field](payload); (err == nil) != (name == "valid") {
				t.Fatalf("%s: %v, %v", name, got.Status, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations to decode, want 0", name, allocs)
		}
	}
}

// FuzzDecodeStored decodes anything, as it is and with the checksum that it lacks. An
// accepted payload is within the limits and has one encoding only.
func FuzzDecodeStored(f *testing.F) {
	for _, c := range goldenStored {
		payload := Append(nil, &c.stored)
		f.Add(payload)
		f.Add(payload[:len(payload)-sumSize])
	}
	for _, payload := range refused() {
		f.Add(payload[:max(len(payload)-sumSize, 0)])
	}
	f.Add([]byte("\x01\x00\x00\xc8\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x01\xff\xff\xff\xffX")) // a field longer than its section
	f.Add([]byte("\x01\x00\x00\xc8\x00\x01\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x01\x00\x00X")) // lengths that overlap
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, payload := range [][]byte{content, withSum(content)} {
			s, err := Decode[Field](payload)
			if err != nil {
				if !errors.Is(err, store.ErrCorrupt) {
					t.Fatalf("%v does not wrap ErrCorrupt", err)
				}
				continue
			}
			s.Fields, s.Trailers = fieldsOf(s.Header), fieldsOf(s.Trailer)
			if !Fits(slices.Concat(s.Fields, s.Trailers)) {
				t.Fatalf("decoded more than is ever stored: %d fields", len(s.Fields))
			}
			if again := Append(nil, &s); !bytes.Equal(again, payload) {
				t.Fatalf("%x\nis encoded again as\n%x", payload, again)
			}
		}
	})
}

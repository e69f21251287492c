package protocol

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// Bytes that are not a google.rpc.Status are refused, for any defect. Unknown fields are
// skipped.
func TestStatusOfACallIsReadOrRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		code uint32
		ok   bool
	}{
		"nothing":                               {"", 0, true},
		"a code":                                {"\x08\x05", 5, true},
		"an unknown number":                     {"\x20\x07\x08\x05", 5, true},
		"an unknown text":                       {"\x22\x01x\x08\x05", 5, true},
		"an unknown number of 8 bytes":          {"\x21\x00\x00\x00\x00\x00\x00\x00\x00\x08\x05", 5, true},
		"an unknown number of 4 bytes":          {"\x25\x00\x00\x00\x00\x08\x05", 5, true},
		"the number of 8 bytes last":            {"\x08\x05\x21\x00\x00\x00\x00\x00\x00\x00\x00", 5, true},
		"the number of 4 bytes last":            {"\x08\x05\x25\x00\x00\x00\x00", 5, true},
		"the largest number of a field":         {"\xf8\xff\xff\xff\x0f\x00\x08\x05", 5, true},
		"a field of number 0":                   {"\x00\x05", 0, false},
		"a field of number 0 in 2 bytes":        {"\x80\x00\x05", 0, false},
		"a field of number 2^29":                {"\x80\x80\x80\x80\x10\x05", 0, false},
		"a tag that breaks off":                 {"\x08\x05\x80", 0, false},
		"a tag that is too large":               {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, false},
		"a number that is missing":              {"\x08", 0, false},
		"a number that breaks off":              {"\x08\x80", 0, false},
		"a number that is too large":            {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, false},
		"a text without its length":             {"\x12", 0, false},
		"a text whose length breaks off":        {"\x12\x80", 0, false},
		"a text whose length is too large":      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, false},
		"a text that is a byte too short":       {"\x12\x02x", 0, false},
		"a text that is as long as memory":      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7fx", 0, false},
		"a number of 8 bytes that breaks off":   {"\x08\x05\x21\x00\x00\x00\x00\x00\x00\x00", 0, false},
		"a number of 4 bytes that breaks off":   {"\x08\x05\x25\x00\x00\x00", 0, false},
		"the start of a group":                  {"\x23\x24\x08\x05", 0, false},
		"a detail that is broken":               {"\x1a\x02\x0a\x05", 0, false},
		"a detail of a text that is a byte off": {"\x1a\x03\x0a\x02x", 0, false},
	} {
		code, message, details, ok := parseStatus([]byte(c.text))
		if code != c.code || ok != c.ok || message != "" || details != nil {
			t.Errorf("%s: %d %q %v, %t, want %d, %t", name, code, message, details, ok, c.code, c.ok)
		}
	}
}

// A delay is in seconds and the nanoseconds beyond them, as google.protobuf.Duration has
// it.
func TestRetryInfoHasItsDelay(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]string{
		2 * time.Second:         "\x0a\x02\x08\x02",
		1500 * time.Millisecond: "\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01",
		time.Millisecond:        "\x0a\x04\x10\xc0\x84\x3d",
	} {
		if got := retryInfo(delay); string(got.Value) != want || got.Type != "type.googleapis.com/google.rpc.RetryInfo" {
			t.Errorf("%v: %s %x, want %x", delay, got.Type, got.Value, want)
		}
	}
}

// A status that is written is read back, with every detail.
func TestStatusOfACallComesBack(t *testing.T) {
	t.Parallel()
	details := []Detail{{Type: "a", Value: []byte("1")}, {Type: "b", Value: []byte{}}, retryInfo(time.Second)}
	code, message, got, ok := parseStatus(appendStatus(nil, 14, "later", details))
	if !ok || code != 14 || message != "later" || !slices.EqualFunc(got, details, func(a, b Detail) bool { return a.Type == b.Type && bytes.Equal(a.Value, b.Value) }) {
		t.Errorf("%d %q %v, %t", code, message, got, ok)
	}
}

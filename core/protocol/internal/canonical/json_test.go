package canonical

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

// A member is copied once for each level above it, and no oftener: a body that is as
// deep, wide and unsorted as it may be does not make its fingerprint grow.
func TestJSONIsBounded(t *testing.T) {
	t.Parallel()
	var body bytes.Buffer
	for range MaxDepth - 1 {
		body.WriteString(`{"b":0,"a":`)
	}
	body.WriteString("{")
	for i := range 10_000 {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(`"` + strconv.Itoa(99_999-i) + `":""`)
	}
	body.WriteString(strings.Repeat("}", MaxDepth))
	canonical, ok := AppendJSON(nil, body.Bytes())
	if !ok {
		t.Fatal("the body has no canonical form")
	}
	if len(canonical) > 5*body.Len() {
		t.Errorf("%d bytes of JSON have a canonical form of %d", body.Len(), len(canonical))
	}
}

// FuzzJSON compares with encoding/json and math/big: two texts have one
// canonical form exactly if they are the same value, and a text's canonical form survives
// being written anew.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":1.0,"b":[null,true,""]}`), []byte(`{"b":[null,true,""],"a":10e-1}`))
	f.Add([]byte(`"\ud83d\ude00"`), []byte(`"😀"`))
	f.Add([]byte(`{"a":1,"\u0061":2}`), []byte(`{"a":2}`))
	f.Add([]byte(`[0.00120e-3,-0]`), []byte(`[12e-7,0]`))
	f.Add([]byte(`[1,2]`), []byte(`[12]`))
	f.Add([]byte(`{"\u0062":1,"a\/":2}`), []byte(`{"a/":2.0,"b":1}`))
	f.Add([]byte(`[1e-999999999999999,0.1e-0,100,-0e0]`), []byte(`[10e-999999999999999,1e-1,1E2,0]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		first, ok := AppendJSON(nil, a)
		if !ok {
			return
		}
		valueA := decodeJSON(t, a)
		again := must(json.MarshalIndent(valueA, "", "\t"))
		if rewritten, ok := AppendJSON(nil, again); !ok || !bytes.Equal(rewritten, first) {
			t.Fatalf("%s and %s are one value with two forms", a, again)
		}
		second, ok := AppendJSON(nil, b)
		if !ok {
			return
		}
		same, decided := sameJSON(valueA, decodeJSON(t, b))
		if decided && same != bytes.Equal(first, second) {
			t.Fatalf("%s and %s: same value %t, forms %q and %q", a, b, same, first, second)
		}
	})
}

func decodeJSON(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s has a canonical form and cannot be decoded: %v", text, err)
	}
	return v
}

// sameJSON compares two decoded values. It gives up on numbers that are too long to
// calculate with.
func sameJSON(a, b any) (same, decided bool) {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false, true
		}
		return sameNumber(a.String(), b.String())
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false, true
		}
		same = true
		for i := range a {
			s, ok := sameJSON(a[i], b[i])
			if !ok {
				return false, false
			}
			same = same && s
		}
		return same, true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false, true
		}
		same = true
		for name := range a {
			other, ok := b[name]
			if !ok {
				return false, true
			}
			s, ok := sameJSON(a[name], other)
			if !ok {
				return false, false
			}
			same = same && s
		}
		return same, true
	default:
		switch b.(type) {
		case json.Number, []any, map[string]any:
			return false, true
		}
		return a == b, true
	}
}

func sameNumber(a, b string) (same, decided bool) {
	for _, n := range []string{a, b} {
		if i := strings.IndexAny(n, "eE"); i >= 0 && len(n)-i > 5 {
			return false, false
		}
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0, okX && okY
}

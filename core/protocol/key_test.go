package protocol

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

const uuid = "8e03978e-40d5-43dd-bc93-6894a57f9324"

func TestKeyGrammar(t *testing.T) {
	t.Parallel()
	const either, compat, strict = "either mode", "Compat", "Strict"
	long := strings.Repeat("k", 255)
	for _, c := range []struct {
		rule, mode string
		line, want string
		err        error
	}{
		// R2: a String of RFC 9651
		{"R2 string", either, `"` + uuid + `"`, uuid, nil},
		{"R2 any printable byte", either, `"a b,c;d=(e)<f>'{g}"`, `a b,c;d=(e)<f>'{g}`, nil},
		{"R2 a space is a key", either, `" "`, ` `, nil},
		{"R2 case counts", either, `"AbC"`, `AbC`, nil},
		{"R2 escapes are decoded", either, `"a\"b\\c"`, `a"b\c`, nil},
		{"R2 parameters are ignored", either, `"k";a;b=1;c="x;y"; d=?0;e=tok/en;f=:AAEC:;g=1.5;h=@17;i=%"%c3%bc";*j=-7`, `k`, nil},
		{"R2 bad escape", either, `"a\b"`, "", errKeyString},
		{"R2 escape at the end", either, `"a\"`, "", errKeyString},
		{"R2 unbalanced", either, `"a`, "", errKeyString},
		{"R2 a lone quote", either, `"`, "", errKeyString},
		{"R2 trailing bytes", either, `"a"b`, "", errKeyString},
		{"R2 quote within", either, `"a"b"`, "", errKeyString},
		{"R2 trailing semicolon", either, `"a";`, "", errKeyString},
		{"R2 space before parameters", either, `"a" ;b`, "", errKeyString},
		{"R2 parameter without name", either, `"a";=1`, "", errKeyString},
		{"R2 parameter in upper case", either, `"a";B=1`, "", errKeyString},
		{"R2 parameter without value", either, `"a";b=`, "", errKeyString},
		{"R2 number too long", either, `"a";b=1234567890123456`, "", errKeyString},
		{"R2 inner list", compat, `("a")`, "", errKeyBare},

		// R3: bare values
		{"R3 UUID that begins with a digit", compat, uuid, uuid, nil},
		{"R3 UUID that begins with a letter", compat, "f" + uuid[1:], "f" + uuid[1:], nil},
		{"R3 the whole alphabet", compat, "AZaz09._~:+/=-", "AZaz09._~:+/=-", nil},
		{"R3 other bytes", compat, "a_b@c", "", errKeyBare},
		{"R3 space within", compat, "a b", "", errKeyBare},
		{"R3 quote within", compat, `a"b"`, "", errKeyBare},
		{"R3 parameters need a string", compat, "a;b=1", "", errKeyBare},
		{"R3 single quotes", compat, "'a'", "", errKeyBare},
		{"R3 only strings in Strict", strict, uuid, "", errKeyUnquoted},
		{"R3 a token is no string", strict, "token", "", errKeyUnquoted},
		{"R3 an inner list is no string", strict, `("a")`, "", errKeyUnquoted},
		{"R3 binary is no string", strict, ":AAEC:", "", errKeyUnquoted},

		// R4: bytes
		{"R4 NUL", either, "\"a\x00b\"", "", errKeyBytes},
		{"R4 0x01", either, "\"a\x01b\"", "", errKeyBytes},
		{"R4 bare CR", either, "\"a\rb\"", "", errKeyBytes},
		{"R4 LF", either, "\"a\nb\"", "", errKeyBytes},
		{"R4 TAB within", either, "\"a\tb\"", "", errKeyBytes},
		{"R4 TAB between parameters", either, "\"a\";\tb", "", errKeyBytes},
		{"R4 DEL", either, "\"a\x7f\"", "", errKeyBytes},
		{"R4 UTF-8", either, `"é"`, "", errKeyBytes},
		{"R4 0x80", either, "a\x80", "", errKeyBytes},
		{"R4 0xff", either, "\"\xff\"", "", errKeyBytes},
		{"R4 no-break space is not trimmed", either, "\u00a0\"a\"", "", errKeyBytes},
		{"R4 line feed is not trimmed", either, "\"a\"\n", "", errKeyBytes},
		{"R4 surrounding spaces and TABs", either, " \t \"a\" \t", `a`, nil},
		{"R4 surrounding spaces and TABs, bare", compat, "\t a \t", `a`, nil},

		// R5: length
		{"R5 empty", either, "", "", errKeyEmpty},
		{"R5 white space only", either, " \t ", "", errKeyEmpty},
		{"R5 empty string", either, `""`, "", errKeyEmpty},
		{"R5 empty string with parameters", either, `"";a`, "", errKeyEmpty},
		{"R5 the maximum", either, `"` + long + `"`, long, nil},
		{"R5 the maximum, bare", compat, long, long, nil},
		{"R5 over the maximum", either, `"` + long + `k"`, "", errKeyTooLong},
		{"R5 over the maximum, bare", compat, long + "k", "", errKeyTooLong},
		{"R5 decoded bytes count", either, `"` + strings.Repeat(`\\`, 255) + `"`, strings.Repeat(`\`, 255), nil},
		{"R5 decoded bytes over the maximum", either, `"` + strings.Repeat(`\\`, 256) + `"`, "", errKeyTooLong},
		{"R5 parameters without end", either, `"a"` + strings.Repeat(";b", 1000), "", errKeyTooLong},

		// R6: lists
		{"R6 list of strings", either, `"a", "b"`, "", errKeyString},
		{"R6 list of one", either, `"a",`, "", errKeyString},
		{"R6 list of bare values", compat, "a,b", "", errKeyBare},
		{"R6 equal twice", compat, "a, a", "", errKeyBare},
	} {
		for _, g := range []keyGrammar{{mode: Compat, max: 255}, {mode: Strict, max: 255}} {
			if c.mode == compat && g.mode == Strict || c.mode == strict && g.mode == Compat {
				continue
			}
			got, err := g.parse(c.line)
			if got != c.want || !errors.Is(err, c.err) || (err != nil) != errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s, mode %d: parse(%q) = %q, %v; want %q, %v", c.rule, g.mode, c.line, got, err, c.want, c.err)
			}
		}
	}
}

// keyErrors are all errors of parse, and those that a guard adds.
var keyErrors = []keyError{
	errKeyEmpty, errKeyTooLong, errKeyBytes, errKeyBare, errKeyUnquoted, errKeyString, errKeyRepeated,
	errKeyParts,
}

func TestCommonKeysDoNotAllocate(t *testing.T) {
	g := keyGrammar{max: defaultKeyLimit}
	for _, line := range []string{uuid, `"` + uuid + `"`, " " + uuid + "\t", "", "a b", "\x00", strings.Repeat("k", 256)} {
		allocs := testing.AllocsPerRun(100, func() {
			_, _ = g.parse(line)
		})
		if allocs != 0 {
			t.Errorf("parse(%q): %v allocations, want 0", line, allocs)
		}
	}
}

// FuzzKey checks of any line: one result for each, never a panic, errors that are
// constants, and keys that are the same however they are spelled.
func FuzzKey(f *testing.F) {
	for _, line := range []string{
		uuid, `"` + uuid + `"`, `"a\"b\\c"`, `"k";a;b=1;c="x"`, `"k";d=?0;e=tok;f=:AA==:;g=1.5;h=@17;i=%"%c3%bc"`, `""`, " ", "a,b",
		`"a", "b"`, "'a'", "\"a\x00\"", "\t\"a\"\t", `"a\`, strings.Repeat("k", 256), `"k"` + strings.Repeat(";a", 600),
		`"k";a=%"%c`, `"k";a="\"\\;";b`, "\t \"  \";   a=-0.125 \t",
	} {
		f.Add(line)
	}
	compat, strict := keyGrammar{mode: Compat, max: defaultKeyLimit}, keyGrammar{mode: Strict, max: defaultKeyLimit}
	f.Fuzz(func(t *testing.T, line string) {
		key, err := compat.parse(line)
		strictKey, strictErr := strict.parse(line)
		for _, err := range []error{err, strictErr} {
			var known keyError
			if err != nil && !errors.As(err, &known) {
				t.Fatalf("parse(%q) fails with %v, which is none of the constants", line, err)
			}
		}
		if strictErr == nil && (err != nil || key != strictKey) {
			t.Fatalf("Strict reads %q as %q, Compat as %q, %v", line, strictKey, key, err)
		}
		if err != nil {
			return
		}
		if key == "" || len(key) > defaultKeyLimit {
			t.Fatalf("parse(%q) accepts a key of %d bytes", line, len(key))
		}
		if i := strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
			t.Fatalf("parse(%q) lets byte %#02x pass", line, key[i])
		}
		quoted := `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(key) + `"`
		for _, spelled := range []string{quoted, quoted + ";v=1", " " + quoted + "\t"} {
			for _, g := range []keyGrammar{compat, strict} {
				if again, err := g.parse(spelled); again != key || err != nil {
					t.Fatalf("%q is the key %q, its spelling %q in mode %d is %q, %v", line, key, spelled, g.mode, again, err)
				}
			}
		}
	})
}

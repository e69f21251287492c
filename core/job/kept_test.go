package job_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
)

// These vectors were computed by a separate program from docs/engineering/adr/0019-do.md,
// and are frozen.
func TestResultIsLayoutVersion1(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name, payload string
		value         receipt
		err           error
		described     string
	}{
		{"value", "d001017b224e756d626572223a377d96488e13", receipt{Number: 7}, nil, "a value of 12 bytes"},
		{"answer", "d0010208736f6c642d6f7574736f6c64206f7574668eb716", receipt{}, job.Keep(errSoldOut), "an error that is the answer of 17 bytes"},
		{"failure", "d00103007468652062616e6b20697320617761794e7bfbcd", receipt{}, errAway, "a failure of 17 bytes"},
		{"panic", "d0010488bc2602", receipt{}, job.ErrPanicked, "a panic"},
		{"nothing", "d001057ad7a501", receipt{}, job.ErrUnkept, "no result: it could not be encoded"},
	} {
		payload := must(hex.DecodeString(v.payload))
		if !errors.Is(v.err, job.ErrPanicked) && !errors.Is(v.err, job.ErrUnkept) { // which only Do writes
			if got, err := job.EncodeResult(receipts, v.value, v.err); err != nil || !bytes.Equal(got, payload) {
				t.Errorf("%s: %x (%v), want %s", v.name, got, err, v.payload)
			}
		}
		value, err := job.DecodeResult(receipts, payload)
		if value != v.value || (err == nil) != (v.err == nil) || err != nil && err.Error() != v.err.Error() {
			t.Errorf("%s: read as %+v, %v", v.name, value, err)
		}
		if err != nil {
			if e := doError(t, err); !e.Kept || e.Answer != (v.name == "answer") || e.Outcome != reprise.Replayed {
				t.Errorf("%s: %+v", v.name, e)
			}
		}
		if other := job.DescribeResult(payload[1:]) + job.DescribeResult(nil); other != "" {
			t.Errorf("%s: another payload is described as %q", v.name, other)
		}
		if got := job.DescribeResult(payload); got != v.described {
			t.Errorf("%s is described as %q, want %q", v.name, got, v.described)
		}
		if got := job.DescribeResult(payload[:6]) + job.DescribeResult(payload[1:]); got != "unreadable" {
			t.Errorf("%s, damaged, is described as %q", v.name, got)
		}
	}
}

// A result with any changed byte is corrupt.
func TestResultThatIsDamagedIsCorrupt(t *testing.T) {
	t.Parallel()
	sound := must(job.EncodeResult(receipts, receipt{Number: 7}, nil))
	for i := range sound {
		for bit := range 8 {
			damaged := bytes.Clone(sound)
			damaged[i] ^= 1 << bit
			_, err := job.DecodeResult(receipts, damaged)
			wantError(t, hex.EncodeToString(damaged), err, store.ErrCorrupt)
		}
		_, err := job.DecodeResult(receipts, sound[:i])
		wantError(t, "cut short", err, store.ErrCorrupt)
	}
	for name, head := range map[string]string{
		"another mark, as that of a guard's 404 without its body": "\x01\x01\x01{}",
		"kind 0": "\xd0\x01\x00", "kind 6": "\xd0\x01\x06{}", "version 2": "\xd0\x02\x01{}", "a panic with content": "\xd0\x01\x04x",
		"a value that the codec cannot read": "\xd0\x01\x01{", "an error without a name": "\xd0\x01\x02", "a name that is cut short": "\xd0\x01\x02\x05sold",
		"a length that is not the shortest": "\xd0\x01\x02\x80\x00text",
	} {
		_, err := job.DecodeResult(receipts, summed(head))
		wantError(t, name, err, store.ErrCorrupt)
	}
	if got, err := job.DecodeResult(job.Bytes(), summed("\xd0\x01\x01{")); err != nil || string(got) != "{" {
		t.Errorf("%q, %v", got, err)
	}
}

// summed appends the checksum.
func summed(content string) []byte {
	return binary.BigEndian.AppendUint32([]byte(content), crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli)))
}

func FuzzDecodeResult(f *testing.F) {
	for _, kind := range "\x00\x01\x02\x03\x04\x05\x06" {
		f.Add(summed("\xd0\x01" + string(kind) + "\x08sold-outtext"))
	}
	f.Add([]byte("\x01\x00\x00\xc8"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		before := bytes.Clone(payload)
		value, err := job.DecodeResult(job.NamedErrors(job.Bytes(), map[string]error{"sold-out": errSoldOut}), payload)
		if !bytes.Equal(before, payload) {
			t.Fatal("the payload was modified")
		}
		var kept *job.DoError
		switch {
		case errors.Is(err, store.ErrCorrupt):
		case errors.As(err, &kept):
			if !kept.Kept || value != nil {
				t.Fatalf("%q, %+v", value, kept)
			}
		case err != nil:
			t.Fatalf("another error: %v", err)
		default:
			if again, err := job.EncodeResult(job.Bytes(), value, nil); err != nil || !bytes.Equal(again, payload) {
				t.Fatalf("%x is encoded as %x (%v)", payload, again, err)
			}
		}
	})
}

// A caller that changes its result changes no record.
func TestBytesAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		for range 3 {
			got, err := job.Do(t.Context(), b.Engine, order("k"), job.Bytes(), func(context.Context) ([]byte, error) { return []byte("answer"), nil })
			if err != nil || string(got.Value) != "answer" {
				t.Fatalf("%q, %v", got.Value, err)
			}
			copy(got.Value, "AAAAAA")
		}
	})
}

// badCodec fails as a test says.
type badCodec struct {
	encode, decode func() error
	size           int
}

func (c badCodec) Encode(receipt) ([]byte, error) {
	if c.encode != nil {
		return nil, c.encode()
	}
	return make([]byte, c.size), nil
}

func (c badCodec) Decode([]byte) (receipt, error) {
	if c.decode != nil {
		return receipt{}, c.decode()
	}
	return receipt{}, nil
}

func (c badCodec) EncodeError(error) ([]byte, error) { return c.Encode(receipt{}) }

func (c badCodec) DecodeError([]byte) (kept, err error) {
	if c.decode == nil {
		return nil, nil //nolint:nilnil // a codec's mistake
	}
	return nil, c.decode()
}

// A result that cannot be kept ends the operation, and does not run it again. Where its
// effects can be rolled back, they are.
func TestDoWithAResultThatCannotBeKept(t *testing.T) {
	fails := func() error { return errAway }
	panics := func() error { panic("a bug") }
	for name, codec := range map[string]badCodec{
		"encode fails": {encode: fails}, "encode panics": {encode: panics},
		"decode fails": {decode: fails}, "decode panics": {decode: panics},
		"too large": {size: store.MaxPayload - 6},
	} {
		for _, leave := range []error{nil, job.Keep(errSoldOut)} {
			inTime(t, name+" with error "+errText(leave), func(t *testing.T) {
				d := newDoer(setup(t, reprise.Config{}), reprise.Recoverable)
				d.codec = codec
				fn := func(context.Context) error { return leave }
				got, replayed, err := d.do(t.Context(), fn)
				wantError(t, "the first run", err, job.ErrUnkept)
				wantSettlement(t, err, job.Park, 0)
				if leave == nil && got != (receipt{Number: 1, hidden: 1}) || replayed {
					t.Errorf("%+v, replayed %v", got, replayed)
				}
				_, replayed, err = d.do(t.Context(), fn)
				wantError(t, "a retry", err, job.ErrUnkept)
				wantSettlement(t, err, job.Park, 0)
				if !replayed {
					t.Error("not replayed")
				}
				d.wantRuns(t, 1)
			})
			inTime(t, name+" with error "+errText(leave)+" in a transaction", func(t *testing.T) {
				b, st := setupTransacting(t)
				d := newDoer(b, reprise.Recoverable)
				d.codec, d.op.Transactional = codec, true
				for n, undo := range []error{nil, nil, store.ErrMisconfigured} { // the last time fn has ended it
					st.Undo = undo
					_, replayed, err := d.do(t.Context(), func(context.Context) error { return leave })
					wantError(t, "Do", err, job.ErrUnkept)
					wantSettlement(t, err, job.Park, 0)
					if doError(t, err).Kept || replayed {
						t.Error("it is kept")
					}
					d.wantRuns(t, int64(n)+1)
				}
			})
		}
	}
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return strings.ReplaceAll(err.Error(), " ", "-")
}

// A name that is cut short, or written in another way than EncodeError writes it, is
// refused; the text may be empty.
func TestNamedErrorsReadWhatTheyWrote(t *testing.T) {
	t.Parallel()
	codec, ok := job.NamedErrors[receipt](nil, map[string]error{"sold-out": errSoldOut, "away": errAway}).(job.ErrorCodec)
	if !ok {
		t.Fatal("it is no ErrorCodec")
	}
	for data, want := range map[string]string{
		"\x08sold-outno more": "no more", "\x08sold-out": "", "\x00text": "text", "\x00": "", "\x04gonetext": "text",
	} {
		kept, err := codec.DecodeError([]byte(data))
		if err != nil || kept == nil || kept.Error() != want || errors.Is(kept, errSoldOut) != strings.HasPrefix(data, "\x08") {
			t.Errorf("%q: %v, %v, want %q", data, kept, err, want)
		}
	}
	for _, data := range []string{"", "\x80", "\x01", "\x05abcd", "\x05ab", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "\x80\x00text", strings.Repeat("\xff", 11)} {
		if kept, err := codec.DecodeError([]byte(data)); err == nil {
			t.Errorf("%q is read as %v", data, kept)
		}
	}
}

// An error says why, where there is a reason, and ends where there is none.
func TestDoErrorEndsWithItsCause(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]job.DoError{
		"reprise: the operation ran, and its result is unrecorded":                   {End: reprise.EndUnrecorded},
		"reprise: the operation ran, and its result is unrecorded: the bank is away": {End: reprise.EndUnrecorded, Cause: errAway},
		"reprise: the operation ran without protection":                              {Outcome: reprise.Unprotected},
		"reprise: the operation ran without protection: the bank is away":            {Outcome: reprise.Unprotected, Cause: errAway},
		"sold out":         {Outcome: reprise.Unprotected, End: reprise.EndUnrecorded, Cause: errAway, Err: errSoldOut},
		"the bank is away": {Outcome: reprise.Unavailable, Cause: errAway},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A result is kept up to the largest payload, of which the form takes 7 bytes.
func TestResultsAreKeptUpToTheLargestPayload(t *testing.T) {
	t.Parallel()
	value := make([]byte, store.MaxPayload-6)
	payload, err := job.EncodeResult(job.Bytes(), value[1:], nil)
	if err != nil || len(payload) != store.MaxPayload {
		t.Errorf("%d bytes are kept in %d: %v", len(value)-1, len(payload), err)
	}
	_, err = job.EncodeResult(job.Bytes(), value, nil)
	if want := "it has 67108858 bytes, want 67108857 at most"; !errors.Is(err, job.ErrUnkept) || !strings.Contains(err.Error(), want) {
		t.Errorf("a byte more: %v, want %s", err, want)
	}
}

// forgetting is a codec that decodes every kept error as nil.
type forgetting struct{ job.Codec[[]byte] }

func (forgetting) EncodeError(err error) ([]byte, error)      { return []byte(err.Error()), nil }
func (forgetting) DecodeError([]byte) (kept error, err error) { return nil, nil }

func TestKeptErrorThatACodecForgetsIsCorrupt(t *testing.T) {
	t.Parallel()
	payload := must(job.EncodeResult(job.Bytes(), nil, job.Keep(errSoldOut)))
	if _, err := job.DecodeResult(forgetting{job.Bytes()}, payload); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}

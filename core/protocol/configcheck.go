package protocol

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

const (
	defaultHeader = "Idempotency-Key"
	defaultBody   = 1 << 20
	maxKeyLength  = 4096

	defaultMaxBlob     = 256 << 20
	defaultBlobTimeout = 10 * time.Second
	maxBlobTimeout     = time.Hour
	defaultMaxSpool    = 4 << 30
)

var (
	defaultMethods = []string{"POST", "PATCH"}
	neverKeyed     = []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}
)

// withDefaults fills in the defaults and returns [store.ErrInvalid] for the first
// invalid field.
func (c Config) withDefaults() (Config, error) {
	if !reflect.ValueOf(c.Engine).IsZero() {
		return c, invalid("Engine", "is set, but the guard uses an engine that exists: New makes one from it")
	}
	c = c.clone()
	if c.Key.names == nil {
		c.Key.names = []string{defaultHeader}
	}
	if c.Methods == nil {
		c.Methods = defaultMethods
	}
	if c.Problems.Base == "" {
		c.Problems.Base = defaultProblemBase
	}
	orDefault(&c.Limits.Key, defaultKeyLimit)
	orDefault(&c.Limits.RequestBody, defaultBody)
	orDefault(&c.Limits.ResponseBody, defaultBody)

	if err := c.Key.check(); err != nil {
		return c, err
	}
	if err := c.prepareWindow(); err != nil {
		return c, err
	}
	if err := checkMethods(c.Methods); err != nil {
		return c, err
	}
	if len(c.Label) > store.MaxLabel || !syntax.Printable(c.Label) {
		return c, invalid("Label", "%q, want up to %d bytes of printable US-ASCII", c.Label, store.MaxLabel)
	}
	if c.Label == store.ProbeLabel {
		return c, invalid("Label", "%q, whose records no listing shows", c.Label)
	}
	for _, n := range c.Fingerprint.Headers {
		if !syntax.ValidName(n) {
			return c, invalid("Fingerprint.Headers", "%q is not a field name", n)
		}
		if slices.ContainsFunc(c.Key.names, func(key string) bool { return strings.EqualFold(key, n) }) {
			return c, invalid("Fingerprint.Headers", "%s is a header of the key: a retry that writes its key in another way would be another request", n)
		}
	}
	c.Fingerprint.Headers = sortedNames(c.Fingerprint.Headers)
	for _, f := range []struct {
		name              string
		value, least, top int
	}{
		{"KeyMode", int(c.KeyMode), 0, int(Strict)},
		{"Limits.Key", c.Limits.Key, minKeyLimit, maxKeyLength},
		{"MaxAttempts", c.MaxAttempts, 0, math.MaxInt32},
		{"Limits.RequestBody", c.Limits.RequestBody, 1, math.MaxInt32},
		{"Limits.ResponseBody", c.Limits.ResponseBody, 1, record.MaxBody},
		{"Oversize", int(c.Oversize), 0, int(Unavailable)},
		{"Preset", int(c.Preset), 0, int(reprise.AtMostOnce)},
	} {
		if f.value < f.least || f.value > f.top {
			return c, invalid(f.name, "%d, want %d to %d", f.value, f.least, f.top)
		}
	}
	if !validURI(c.Problems.Base) {
		return c, invalid("Problems.Base", "%q is not a URI", c.Problems.Base)
	}
	if c.Retention != 0 && (c.Retention < store.MinDuration || c.Retention > store.MaxDuration) {
		return c, invalid("Retention", "%v, want %v to %v", c.Retention, store.MinDuration, store.MaxDuration)
	}
	if c.Horizon != 0 && (c.Horizon < store.MinDuration || c.Horizon > store.MaxDuration-c.Retention) {
		return c, invalid("Horizon", "%v, want 0, or %v to %v: %v together with the retention",
			c.Horizon, store.MinDuration, store.MaxDuration-c.Retention, store.MaxDuration)
	}
	if c.Wait < 0 {
		return c, invalid("Wait", "%v is negative", c.Wait)
	}
	if err := c.Seal.check(); err != nil {
		return c, err
	}
	if err := c.Offload.prepare(c.Limits.ResponseBody, c.Seal.on() || len(c.Seal.OtherSecrets) > 0); err != nil {
		return c, err
	}
	switch {
	case c.FailOpen && c.Preset == reprise.AtMostOnce:
		return c, invalid("FailOpen", "cannot be combined with AtMostOnce, because an operation may then run twice")
	case c.FailOpen && c.Transactional:
		return c, invalid("FailOpen", "cannot be combined with Transactional, because an operation then runs without its transaction")
	case c.FailOpen && c.Horizon > 0:
		return c, invalid("FailOpen", "cannot be combined with Horizon, because an operation that ended may then run again")
	}
	return c, nil
}

// prepareWindow fills in the retention and the fingerprint of a policy whose keys are the
// content of requests, and refuses those that contradict it.
func (c *Config) prepareWindow() error {
	if c.Key.origin != ofContent {
		return nil
	}
	if c.Fingerprint.Func == nil {
		c.Fingerprint.Func = CanonicalJSON
	}
	orDefault(&c.Retention, c.Key.window)
	switch {
	case c.Retention != c.Key.window:
		return invalid("Retention", "%v, and the window of KeyContent is %v: leave Retention out", c.Retention, c.Key.window)
	case c.Horizon != 0:
		return invalid("Horizon", "cannot be combined with KeyContent, because the same content is a new operation after the window")
	case c.Fingerprint.Func.is(NoFingerprint):
		return invalid("Fingerprint.Func", "NoFingerprint cannot be combined with KeyContent, because all requests would be one operation")
	}
	return nil
}

// checkMemory refuses AtMostOnce where the record of an operation that is not completed
// may end while its handler still runs, or before its lease has: the key would be new.
// The retention is that of the policy or of the engine.
func (c *Config) checkMemory(retention time.Duration, engine *reprise.Config) error {
	least := engine.MaxRun + engine.Lease
	if c.Preset != reprise.AtMostOnce || c.Key.origin == ofContent || engine.MaxRun < 0 || retention+c.Horizon >= least {
		return nil
	}
	return invalid("Retention", "%v and a Horizon of %v, want at least %v together, or a shorter Engine.MaxRun: with AtMostOnce a key is "+
		"remembered from its claim for longer than a handler runs, which is the engine's MaxRun of %v and its Lease of %v",
		retention, c.Horizon, least, engine.MaxRun, engine.Lease)
}

// prepare fills in the defaults of a group that is on and returns [store.ErrInvalid] for
// the first invalid field. kept is the longest body that a record keeps; sealed says that
// there may be blobs that are encrypted.
func (c *Offloading) prepare(kept int, sealed bool) error {
	if c.Blobs == nil {
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"ReadOnly", c.ReadOnly},
			{"MaxBody", c.MaxBody != 0},
			{"Timeout", c.Timeout != 0},
			{"Dir", c.Dir != ""},
			{"MaxSpool", c.MaxSpool != 0},
		} {
			if f.set {
				return invalid("Offload."+f.name, "is set without Blobs: set Blobs, or leave Offload out")
			}
		}
		return nil
	}
	orDefault(&c.MaxBody, defaultMaxBlob)
	orDefault(&c.Timeout, defaultBlobTimeout)
	longest := c.MaxBody
	if sealed {
		longest = record.SealedBlobSize(c.MaxBody)
	}
	orDefault(&c.MaxSpool, max(defaultMaxSpool, longest))
	switch {
	case c.MaxBody < 1 || c.MaxBody > record.MaxBlob:
		return invalid("Offload.MaxBody", "%d, want 1 to %d", c.MaxBody, int64(record.MaxBlob))
	case c.writes() && c.MaxBody <= int64(kept):
		return invalid("Offload.MaxBody", "%d, want more than Limits.ResponseBody, %d", c.MaxBody, kept)
	case c.MaxSpool < c.MaxBody:
		return invalid("Offload.MaxSpool", "%d, want at least MaxBody, %d", c.MaxSpool, c.MaxBody)
	case c.MaxSpool < longest:
		return invalid("Offload.MaxSpool", "%d, want at least MaxBody, %d bytes when it is sealed", c.MaxSpool, longest)
	case c.Timeout < time.Millisecond || c.Timeout > maxBlobTimeout:
		return invalid("Offload.Timeout", "%v, want %v to %v", c.Timeout, time.Millisecond, maxBlobTimeout)
	}
	return nil
}

// unfill makes the fields that still have the value that prepare filled in what they were
// given as, because a default may depend on fields that have changed since.
func (c *Offloading) unfill(filled, given *Offloading) {
	if c.MaxBody == filled.MaxBody {
		c.MaxBody = given.MaxBody
	}
	if c.Timeout == filled.Timeout {
		c.Timeout = given.Timeout
	}
	if c.MaxSpool == filled.MaxSpool {
		c.MaxSpool = given.MaxSpool
	}
}

// checkMethods refuses a list that protects no request (R9).
func checkMethods(methods []string) error {
	if len(methods) == 0 {
		return invalid("Methods", "the list is empty, so nothing would be protected; nil means POST and PATCH")
	}
	for _, m := range methods {
		switch {
		case !syntax.ValidName(m):
			return invalid("Methods", "%q is not a method", m)
		case m != strings.ToUpper(m):
			return invalid("Methods", "%q is never matched, because methods are case-sensitive; write %q", m, strings.ToUpper(m))
		case slices.Contains(neverKeyed, m):
			return invalid("Methods", "%s is never keyed; remove it", m)
		}
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: Config.%s: %s", store.ErrInvalid, field, fmt.Sprintf(format, args...))
}

// clone returns a copy of c that shares no list with it.
func (c Config) clone() Config {
	c.Methods = slices.Clone(c.Methods)
	c.Fingerprint.Headers, c.Keep.Headers = slices.Clone(c.Fingerprint.Headers), slices.Clone(c.Keep.Headers)
	c.Fingerprint.Omit = slices.Clone(c.Fingerprint.Omit)
	c.Seal.OtherSecrets = slices.Clone(c.Seal.OtherSecrets)
	return c
}

func orDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

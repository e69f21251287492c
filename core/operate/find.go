package operate

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// KeyID returns the ID of the operation of a client's key, which is read as a guard reads
// it: with or without its quotes (see [protocol.ParseKey]). Scope is what the scope
// function returns for the client, or [SharedScope], and endpoint is Config.Endpoint of
// the policy. The error wraps [store.ErrInvalid] and does not have the key.
func KeyID(scope, endpoint, key string) (store.ID, error) {
	if scope == "" {
		return store.ID{}, fmt.Errorf("%w: the scope is empty", store.ErrInvalid)
	}
	decoded, err := protocol.ParseKey(key)
	if err != nil {
		return store.ID{}, err
	}
	return store.DeriveID(scope, endpoint, decoded), nil
}

// MinDigits is how many digits of an ID [FindID] needs at least: fewer match too much.
// Logs have 12.
const MinDigits = 8

// AmbiguousError says that several records have an ID that begins with the same digits.
type AmbiguousError struct {
	Digits  string
	Records []store.Record // up to ten of them, in no particular order
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("reprise: the ID %s is ambiguous: %d records or more begin with it; give more digits", e.Digits, len(e.Records))
}

// maxAmbiguous is how many records an [AmbiguousError] has.
const maxAmbiguous = 10

// FindID returns the ID that text names: all of its 64 hexadecimal digits, or the first 8
// or more. For a part it reads all records of the store, or until ctx ends, and reports
// each page to progress, which may be nil.
//
// The error wraps [store.ErrInvalid] for a text that is not an ID, and does not have it,
// because it may be a key. It wraps [store.ErrNotFound] if no record begins with the
// digits. Several that do are an [*AmbiguousError].
func FindID(ctx context.Context, in store.Inspector, text string, progress func(store.Page)) (store.ID, error) {
	digits := strings.ToLower(strings.TrimSpace(text))
	var id store.ID
	switch {
	case strings.Trim(digits, "0123456789abcdef") != "" || len(digits) < MinDigits || len(digits) > 2*len(id):
		return id, fmt.Errorf("%w: the text is not an ID: want its %d hexadecimal digits, or at least the first %d of them; a key is found with its scope", store.ErrInvalid, 2*len(id), MinDigits)
	case len(digits) == 2*len(id):
		_, err := hex.Decode(id[:], []byte(digits))
		return id, err
	}
	var found []store.Record
	scanned, q := 0, store.Query{Limit: 1000, Digits: digits}
	for {
		page, err := in.List(ctx, q)
		if err != nil {
			return id, fmt.Errorf("reprise: looking for the ID %s, after %d records: %w", digits, scanned, err)
		}
		for i := range page.Records {
			r := &page.Records[i]
			again := func(other store.Record) bool { return other.ID == r.ID }
			if strings.HasPrefix(r.ID.String(), digits) && !slices.ContainsFunc(found, again) {
				found = append(found, *r)
			}
		}
		if progress != nil {
			progress(page)
		}
		scanned, q.After = scanned+page.Scanned, page.Next
		if q.After == "" || len(found) >= maxAmbiguous {
			break
		}
	}
	switch len(found) {
	case 0:
		return id, fmt.Errorf("%w: no ID begins with %s", store.ErrNotFound, digits)
	case 1:
		return found[0].ID, nil
	default:
		return id, &AmbiguousError{Digits: digits, Records: found[:min(len(found), maxAmbiguous)]}
	}
}

package reprise_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// One engine per process and store. The zero Config is the documented default in every
// field.
func ExampleNew() {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(engine.Close(context.Background()))

	_, err = reprise.New(memstore.New(), reprise.Config{Lease: time.Millisecond})
	fmt.Println(err)
	// Output:
	// <nil>
	// reprise: invalid argument: Config.Lease is 1ms, want 1s to 87600h0m0s
}

// charge runs once for each key of a tenant; a retry gets the first result.
func charge(ctx context.Context, engine *reprise.Engine, key, request string) (string, error) {
	begun, err := engine.Begin(ctx, reprise.Operation{
		Scope:       "tenant-7",
		Key:         key,
		Fingerprint: sha256.Sum256([]byte(request)),
	})
	switch {
	case err != nil:
		return "", err // the operation did not run: say so, and let the client retry
	case begun.Outcome == reprise.Replayed:
		return string(begun.Payload), nil
	case begun.Outcome != reprise.Claimed:
		return "", errors.New(begun.Outcome.String())
	}

	answer := "charged " + request                                                     // the work, with begun.Attempt.Context()
	result, err := begun.Attempt.Complete(reprise.Completion{Payload: []byte(answer)}) //nolint:contextcheck // bounded by the engine, not by its client
	if err != nil {
		return "", err
	}
	switch result.End {
	case reprise.EndSuperseded:
		return string(result.Payload), nil
	case reprise.EndContested:
		return "", errors.New("another attempt is running")
	default:
		return answer, nil
	}
}

func ExampleEngine_Begin() {
	ctx := context.Background()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(charge(ctx, engine, "key-1", "10 EUR"))
	fmt.Println(charge(ctx, engine, "key-1", "10 EUR"))
	fmt.Println(charge(ctx, engine, "key-1", "99 EUR"))
	// Output:
	// charged 10 EUR <nil>
	// charged 10 EUR <nil>
	//  mismatch
}

// A handler passes a derived key downstream. It is the same in every attempt and does not
// reveal the client's key.
func ExampleAttemptFrom() {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := func(ctx context.Context) {
		attempt, _ := reprise.AttemptFrom(ctx)
		key, err := attempt.Key("payment")
		if errors.Is(err, reprise.ErrNoAttempt) { // a request without a key, where that is optional
			key = "made for this request"
		}
		fmt.Println(attempt.Number(), key)
	}
	begun, err := engine.Begin(context.Background(), reprise.Operation{Scope: "tenant-7", Key: "key-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler(begun.Attempt.Context())
	handler(context.Background())
	result, err := begun.Attempt.Complete(reprise.Completion{})
	fmt.Println(result.End, err)
	// Output:
	// 1 3f91e303-411a-87ee-a3c2-f305856eabf5
	// 0 made for this request
	// recorded <nil>
}

// Close drains: it takes no new operations and waits for those that run. When its context
// ends first, the remaining attempts are cancelled, and the next ones take over when
// their leases have run out.
func ExampleEngine_Close() {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	op := reprise.Operation{Scope: "tenant-7", Key: "key-1"}
	begun, err := engine.Begin(context.Background(), op)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(engine.Close(ctx))
	fmt.Println(context.Cause(begun.Attempt.Context()))
	_, err = engine.Begin(context.Background(), op)
	fmt.Println(err)
	// Output:
	// reprise: closed with unfinished operations (1): context deadline exceeded
	// reprise: lease lost
	// reprise: closed
}

package job_test

import (
	"context"
	"errors"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

type transfer struct {
	Number int
	Amount int
}

var errInsufficient = errors.New("insufficient funds")

// transfers keeps a transfer as JSON, and one error by its name.
var transfers = job.NamedErrors[transfer](nil, map[string]error{"insufficient": errInsufficient})

// A message is worked off once, however often it is delivered.
func ExampleDo() {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	numbers := 0
	consume := func(id string, message []byte) {
		op := reprise.Operation{
			Scope: "transfers", // the consumer: another consumer of the same messages has another
			Key:   id, Fingerprint: store.FingerprintOf([]byte(id), message),
		}
		done, err := job.Do(context.Background(), engine, op, nil, func(context.Context) (transfer, error) {
			numbers++
			return transfer{Number: numbers, Amount: len(message)}, nil
		})
		action, _ := job.SettlementOf(err)
		fmt.Println(done.Value, done.Replayed, err, action)
	}
	consume("message-1", []byte("five!"))
	consume("message-1", []byte("five!"))
	consume("message-1", []byte("seven.."))
	// Output:
	// {1 5} false <nil> ack
	// {1 5} true <nil> ack
	// {0 0} false reprise: the operation did not run: the key belongs to another operation park
}

// A refusal is a result: it is kept, and found again by errors.Is. A failure on the way
// is not a result, and runs again.
func ExampleKeep() {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	try := func(outcome error) {
		op := reprise.Operation{Scope: "transfers", Key: "message-1"}
		done, err := job.Do(context.Background(), engine, op, transfers, func(context.Context) (transfer, error) {
			return transfer{}, outcome
		})
		action, _ := job.SettlementOf(err)
		fmt.Println(err, errors.Is(err, errInsufficient), done.Replayed, action)
	}
	try(errors.New("the bank is away"))
	try(job.Keep(fmt.Errorf("account 7: %w", errInsufficient)))
	try(nil)
	// Output:
	// the bank is away false false nack
	// account 7: insufficient funds true false ack
	// account 7: insufficient funds true true ack
}

// How a consumer settles its messages.
func ExampleSettlementOf() {
	running := &job.DoError{Outcome: reprise.InProgress, Remaining: 7e9}
	for _, err := range []error{nil, running, errors.New("not of Do")} {
		switch action, delay := job.SettlementOf(err); action {
		case job.Ack:
			fmt.Println("acknowledge")
		case job.Nack:
			fmt.Println("deliver again after", delay)
		case job.Park:
			fmt.Println("set aside:", err)
		}
	}
	// Output:
	// acknowledge
	// deliver again after 7s
	// deliver again after 0s
}

package job_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// sealed is a codec that encrypts transfers, and the errors that are kept in place of
// one, for one operation.
type sealed struct {
	aead cipher.AEAD // of cipher.NewGCMWithRandomNonce
	key  string      // of the operation: a result that is moved to another one does not open
}

func (s sealed) seal(data []byte) []byte {
	return s.aead.Seal(nil, nil, data, []byte(s.key)) //nolint:gosec // this cipher makes its nonce itself, and wants nil
}

func (s sealed) open(data []byte) ([]byte, error) { return s.aead.Open(nil, nil, data, []byte(s.key)) }

func (s sealed) Encode(value transfer) ([]byte, error) {
	data, err := json.Marshal(value)
	return s.seal(data), err
}

func (s sealed) Decode(data []byte) (value transfer, err error) {
	data, err = s.open(data)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return value, err
}

func (s sealed) EncodeError(err error) ([]byte, error) { return s.seal([]byte(err.Error())), nil }

func (s sealed) DecodeError(data []byte) (kept, err error) {
	text, err := s.open(data)
	return errors.New(string(text)), err
}

// The codec of Do is the place to encrypt results: the store has only what it writes.
func ExampleDo_sealedCodec() {
	block, err := aes.NewCipher(bytes.Repeat([]byte("k"), 32)) // 32 random bytes, from a vault
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	st := memstore.New()
	engine, err := reprise.New(st, reprise.Config{})
	if err != nil {
		panic(err)
	}
	op := reprise.Operation{Scope: "transfers", Key: "message-1"}
	for range 2 {
		done, err := job.Do(context.Background(), engine, op, sealed{aead, op.Key}, func(context.Context) (transfer, error) {
			return transfer{Number: 1, Amount: 5}, nil
		})
		fmt.Println(done.Value, done.Replayed, err)
	}
	record, err := st.Inspect(context.Background(), store.DeriveID(op.Scope, "", op.Key))
	fmt.Println("in the clear:", bytes.Contains(record.Payload, []byte("Amount")), err)
	// Output:
	// {1 5} false <nil>
	// {1 5} true <nil>
	// in the clear: false <nil>
}

package table

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// together sends calls as one batch to f, and returns how each of them ended.
func together(t *testing.T, f func(*callBatch), calls ...queuedCall) (ends []error, results []store.ClaimResult) {
	t.Helper()
	ends, results = make([]error, len(calls)), make([]store.ClaimResult, len(calls))
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{})
		q := batching.New(batching.Config[queuedCall]{
			Lanes: 1, PerLane: 1, MaxCalls: len(calls),
			Send: func(_ context.Context, batch []batching.Sent[queuedCall]) {
				if len(batch) == 1 {
					<-busy
					batch[0].Finish(nil)
					return
				}
				b := newCallBatch(batch)
				f(b)
				b.finish(nil)
				b.release()
			},
		})
		do := func(i int, v queuedCall) {
			c := q.Call()
			defer c.Release()
			c.Value = v
			err := q.Do(t.Context(), c)
			if i >= 0 {
				ends[i], results[i] = err, c.Value.result
			}
		}
		go do(-1, queuedCall{})
		synctest.Wait()
		for i, v := range calls {
			go do(i, v)
			synctest.Wait() // in their order
		}
		close(busy)
		synctest.Wait()
	})
	return ends, results
}

// claimOf and completion are calls about an operation.
func claimOf(id, owner byte) queuedCall {
	return queuedCall{claim: store.ClaimRequest{
		ID: store.ID{id}, Owner: store.Owner{owner}, Fingerprint: store.Fingerprint{7}, Policy: store.Policy{Label: "orders", AtMostOnce: true, Retention: 90 * time.Minute, Horizon: time.Hour},
		Description: "request " + strconv.Itoa(int(id)), Lease: time.Minute, Takeover: true,
	}}
}

func completion(id, owner byte) queuedCall {
	return queuedCall{completes: true, complete: store.CompleteRequest{
		ID: store.ID{id}, Owner: store.Owner{owner}, Payload: []byte("answer"), Policy: store.Policy{Retention: 90 * time.Minute, Horizon: time.Hour},
	}}
}

// TestBatchHasEachOperationOnce: in the order of the IDs, claims apart from completions;
// a second call of the same ID is sent alone. The parameters are those of the calls.
func TestBatchHasEachOperationOnce(t *testing.T) {
	t.Parallel()
	texts := newTestTable(t, new(sql.DB), slog.Default()).Statements
	types := pgtype.NewMap()
	ends, _ := together(t, func(b *callBatch) {
		for range 2 { // a batch is sent again
			list := b.statements(&texts, true)
			if len(list) != 2 || list[0].Statement != texts.claims || list[1].Statement != texts.completes {
				t.Fatalf("%d statements", len(list))
			}
			if len(list[0].Values) != 10 || len(list[1].Values) != 5 {
				t.Fatalf("%d and %d parameters", len(list[0].Values), len(list[1].Values))
			}
			for _, want := range []struct {
				value []byte
				each  [][]byte
			}{
				{list[0].Values[0], [][]byte{{1}, {3}}},
				{list[0].Values[1], [][]byte{{11}, {31}}},
				{list[1].Values[0], [][]byte{{1}, {2}}},
				{list[1].Values[1], [][]byte{{12}, {21}}},
			} {
				var got [][]byte
				if err := types.Scan(pgtype.ByteaArrayOID, pgtype.BinaryFormatCode, want.value, &got); err != nil {
					t.Fatal(err)
				}
				if len(got) != 2 || got[0][0] != want.each[0][0] || got[1][0] != want.each[1][0] {
					t.Errorf("a parameter is %v, want what begins with %v", got, want.each)
				}
			}
			for i, value := range [][]byte{list[0].Values[3], list[0].Values[4], list[0].Values[5], list[1].Values[3], list[1].Values[4]} {
				var spans []int64
				if err := types.Scan(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, value, &spans); err != nil {
					t.Fatal(err)
				}
				want := []time.Duration{time.Minute, 90 * time.Minute, time.Hour, 90 * time.Minute, time.Hour}[i].Microseconds()
				if !slices.Equal(spans, []int64{want, want}) {
					t.Errorf("a span is %v, want %v", spans, want)
				}
			}
			var (
				labels, descriptions []string
				once                 []int16
			)
			if err := types.Scan(pgtype.TextArrayOID, pgtype.BinaryFormatCode, list[0].Values[6], &labels); err != nil || !slices.Equal(labels, []string{"orders", "orders"}) {
				t.Errorf("the labels are %q, %v", labels, err)
			}
			if err := types.Scan(pgtype.Int2ArrayOID, pgtype.BinaryFormatCode, list[0].Values[7], &once); err != nil || !slices.Equal(once, []int16{1, 1}) {
				t.Errorf("at most once is %v, %v", once, err)
			}
			if err := types.Scan(pgtype.TextArrayOID, pgtype.BinaryFormatCode, list[0].Values[8], &descriptions); err != nil || !slices.Equal(descriptions, []string{"request 1", "request 3"}) {
				t.Errorf("the descriptions are %q, %v", descriptions, err)
			}
			if !bytes.Equal(list[0].Values[9], []byte{1}) {
				t.Error("the batch does not say that replays are common")
			}
		}
	}, claimOf(3, 31), completion(2, 21), claimOf(1, 11), claimOf(3, 32), completion(1, 12), claimOf(1, 13))
	for i, err := range ends {
		if !errors.Is(err, errAlone) { // none has an answer
			t.Errorf("call %d: %v", i, err)
		}
	}
	for _, calls := range [][]queuedCall{{claimOf(1, 1), claimOf(2, 2)}, {completion(1, 1), completion(2, 2)}} {
		together(t, func(b *callBatch) {
			if list := b.statements(&texts, false); len(list) != 1 || len(list[0].Values) == 10 && list[0].Values[9][0] != 0 {
				t.Errorf("%d statements for calls of one kind", len(list))
			}
		}, calls...)
	}
}

// int4 is an integer as the server writes it.
func int4(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// batchRow is a row of claims.sql: a record of an ID, as it was at an instant.
func batchRow(id, owner byte, version, state []byte, lease, valid, clock int64, payload []byte) *wire.Row {
	var size []byte
	if payload != nil {
		size = int4(len(payload))
	}
	whose, ident, request := store.Owner{owner}, store.ID{id}, store.Fingerprint{7}
	return &wire.Row{Columns: [][]byte{
		ident[:], version, state, whose[:], request[:], int4(2), wire.AppendInt8(nil, 40),
		wire.AppendInt8(nil, lease), wire.AppendInt8(nil, valid), wire.AppendInt8(nil, clock), wire.AppendInt2(nil, 0), size, payload,
	}}
}

// TestBatchAnswersEachCall: a created record is the call's whose owner it has, one that
// was there is judged, and a call that has to write or is too large is sent alone.
func TestBatchAnswersEachCall(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000_000_000
	whole := now + time.Minute.Microseconds()
	one, two := []byte{0, 1}, []byte{0, 2}
	read := func(b *callBatch, r *wire.Row) {
		t.Helper()
		if b.readClaim(r); r.Err != nil {
			t.Error(r.Err)
		}
	}
	ends, results := together(t, func(b *callBatch) {
		b.statements(&statements{}, false)
		read(b, batchRow(1, 1, nil, one, whole, whole, now, nil))        // created
		read(b, batchRow(1, 1, one, one, whole, whole, now, nil))        // and then seen
		read(b, batchRow(2, 9, nil, one, whole, whole, now, nil))        // another process created it
		read(b, batchRow(3, 3, nil, one, whole-20_000, whole, now, nil)) // after a wait
		read(b, batchRow(4, 9, one, one, whole, whole, now, nil))        // runs
		read(b, batchRow(5, 9, one, two, now, whole, now, []byte{}))     // completed
		read(b, batchRow(6, 9, one, one, now, whole, now, nil))          // lapsed: to be rewritten
		large := batchRow(7, 9, one, two, now, whole, now, nil)          // its payload stayed where it is
		large.Columns[11] = int4(70_000)                                 //
		read(b, large)                                                   //
		read(b, batchRow(8, 9, one, one, now, now, now, nil))            // was there, unseen …
		read(b, batchRow(8, 8, nil, one, whole, whole, now, nil))        // … and then created
		for _, wrong := range []*wire.Row{batchRow(99, 1, one, one, 0, 0, 0, nil), {}, {Columns: [][]byte{make([]byte, 32)}}} {
			if b.readClaim(wrong); !errors.Is(wrong.Err, wire.ErrRow) {
				t.Errorf("an answer to a call that is not there: %v", wrong.Err)
			}
		}
	}, claimOf(1, 1), claimOf(2, 2), claimOf(3, 3), claimOf(4, 4), claimOf(5, 5), claimOf(6, 6), claimOf(7, 7), claimOf(8, 8), claimOf(9, 9))
	for i, want := range []struct {
		err     error
		outcome store.Outcome
		left    time.Duration
	}{
		{nil, store.Claimed, time.Minute},
		{errAlone, 0, 0},
		{nil, store.Claimed, time.Minute - 20*time.Millisecond},
		{nil, store.InProgress, time.Minute},
		{nil, store.Completed, 0},
		{errAlone, 0, 0},
		{errAlone, 0, 0},
		{nil, store.Claimed, time.Minute},
		{errAlone, 0, 0}, // not answered
	} {
		if !errors.Is(ends[i], want.err) || want.err == nil && (ends[i] != nil || results[i].Outcome != want.outcome || results[i].Remaining != want.left) {
			t.Errorf("call %d: %+v, %v; want %v", i+1, results[i], ends[i], want)
		}
	}
	if results[4].Payload == nil {
		t.Error("the empty payload is lost")
	}

	ends, _ = together(t, func(b *callBatch) {
		b.statements(&statements{}, false)
		for id, owner := range map[byte]byte{1: 1, 2: 9} {
			ident, whose := store.ID{id}, store.Owner{owner}
			r := &wire.Row{Columns: [][]byte{ident[:], whose[:]}}
			if b.readCompleted(r); r.Err != nil {
				t.Error(r.Err)
			}
		}
		wrong := &wire.Row{Columns: [][]byte{make([]byte, 32), make([]byte, 16)}}
		if b.readCompleted(wrong); !errors.Is(wrong.Err, wire.ErrRow) {
			t.Errorf("an answer to a call that is not there: %v", wrong.Err)
		}
	}, completion(1, 1), completion(2, 2), completion(3, 3))
	if ends[0] != nil || !errors.Is(ends[1], errAlone) || !errors.Is(ends[2], errAlone) {
		t.Errorf("completions ended with %v", ends)
	}
}

// TestFailedBatchFailsEachCall: also those that had an answer, because it was undone.
func TestFailedBatchFailsEachCall(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	ends, _ := together(t, func(b *callBatch) {
		b.claims.ends[0] = nil
		b.finish(failed)
	}, claimOf(1, 1), claimOf(2, 2), completion(1, 1))
	for i, err := range ends {
		if !errors.Is(err, failed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

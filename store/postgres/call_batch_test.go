package reprisepg

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"reflect"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
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
	texts := newTestTable(t, new(sql.DB), slog.Default()).statements
	ids := func(first ...byte) (list [][]byte) {
		for _, b := range first {
			id := store.ID{b}
			list = append(list, id[:])
		}
		return list
	}
	owners := func(first ...byte) (list [][]byte) {
		for _, b := range first {
			owner := store.Owner{b}
			list = append(list, owner[:])
		}
		return list
	}
	twice := func(d time.Duration) []int64 { return []int64{d.Microseconds(), d.Microseconds()} }
	request := store.Fingerprint{7}
	ends, _ := together(t, func(b *callBatch) {
		for range 2 { // a batch is sent again
			b.claims.ends[0], b.completes.ends[0] = nil, nil // void, as it was undone
			list := b.statements(&texts, true)
			if len(list) != 2 || list[0].text != texts.claims || list[1].text != texts.completes {
				t.Fatalf("%d statements", len(list))
			}
			want := []any{
				ids(1, 3), owners(11, 31),
				[][]byte{request[:], request[:]},
				twice(time.Minute), twice(90 * time.Minute), twice(time.Hour),
				[]string{"orders", "orders"},
				[]int16{1, 1},
				[]string{"request 1", "request 3"},
				true,
			}
			if !reflect.DeepEqual(list[0].args, want) {
				t.Errorf("claims have the parameters %v, want %v", list[0].args, want)
			}
			want = []any{
				ids(1, 2), owners(12, 21), [][]byte{[]byte("answer"), []byte("answer")}, twice(90 * time.Minute), twice(time.Hour),
			}
			if !reflect.DeepEqual(list[1].args, want) {
				t.Errorf("completions have the parameters %v, want %v", list[1].args, want)
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
			if list := b.statements(&texts, false); len(list) != 1 || len(list[0].args) == 10 && list[0].args[9] != false {
				t.Errorf("%d statements for calls of one kind", len(list))
			}
		}, calls...)
	}
}

// fakeRow has the values of a row.
type fakeRow []any

func (r fakeRow) Scan(to ...any) error {
	if len(to) != len(r) {
		return errRow
	}
	for i, v := range r {
		reflect.ValueOf(to[i]).Elem().Set(reflect.ValueOf(v))
	}
	return nil
}

// batchRow is a row of claims.sql: a record of an ID, as it was at an instant.
func batchRow(id, owner byte, created bool, state int16, lease, valid, clock int64, payload []byte) fakeRow {
	whose, ident, request := store.Owner{owner}, store.ID{id}, store.Fingerprint{7}
	return fakeRow{ident[:], false, created, clock, int16(sqlstore.Version), state, whose[:], request[:], 2, int64(40), lease, valid, false, payload}
}

// TestBatchAnswersEachCall: a created record is the call's, one that was there is judged,
// and a call that has to write, finds a lapsed record or is too large is sent alone.
func TestBatchAnswersEachCall(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000_000_000
	whole := now + time.Minute.Microseconds()
	read := func(b *callBatch, r fakeRow) {
		t.Helper()
		if err := b.readClaim(r); err != nil {
			t.Error(err)
		}
	}
	ends, results := together(t, func(b *callBatch) {
		b.statements(&statements{}, false)
		read(b, batchRow(1, 1, true, sqlstore.Running, whole, whole, now, nil))        // created
		read(b, batchRow(1, 1, false, sqlstore.Running, whole, whole, now, nil))       // and then seen
		once := batchRow(2, 9, false, sqlstore.Running, now, whole, now, nil)          // lapsed, at most once: to be
		once[12] = true                                                                // read after those who write it
		read(b, once)                                                                  //
		read(b, batchRow(3, 3, true, sqlstore.Running, whole-20_000, whole, now, nil)) // after a wait
		read(b, batchRow(4, 9, false, sqlstore.Running, whole, whole, now, nil))       // runs
		read(b, batchRow(5, 9, false, sqlstore.Completed, now, whole, now, []byte{}))  // completed
		read(b, batchRow(6, 9, false, sqlstore.Running, now, whole, now, nil))         // lapsed: to be rewritten
		large := batchRow(7, 9, false, sqlstore.Completed, now, whole, now, nil)       // its payload stayed where it is
		large[1] = true                                                                //
		read(b, large)                                                                 //
		read(b, batchRow(8, 9, false, sqlstore.Running, now, now, now, nil))           // was there, unseen …
		read(b, batchRow(8, 8, true, sqlstore.Running, whole, whole, now, nil))        // … and then created
		for _, wrong := range []fakeRow{batchRow(99, 1, false, sqlstore.Running, 0, 0, 0, nil), {}, {make([]byte, 32)}} {
			if err := b.readClaim(wrong); !errors.Is(err, errRow) {
				t.Errorf("an answer to a call that is not there: %v", err)
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
			if err := b.readCompleted(fakeRow{ident[:], whose[:]}); err != nil {
				t.Error(err)
			}
		}
		if err := b.readCompleted(fakeRow{make([]byte, 32), make([]byte, 16)}); !errors.Is(err, errRow) {
			t.Errorf("an answer to a call that is not there: %v", err)
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

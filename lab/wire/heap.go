package wire

import (
	"runtime"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// The memory that may stay in use, after every record was forgotten.
const (
	perRun     = 256       // the test server counts the runs of every operation for ever
	others     = 512 << 10 // buffers of the server, and other users of the process
	lingering  = 8         // goroutines
	remembered = 1000      // streams, before their records are forgotten
)

// begin counts the goroutines before the first stream.
func (s *subject) begin() {
	s.t.Helper()
	s.executions(opOf('m', 0)) // its connection stays
	s.goroutines = runtime.NumGoroutine()
}

// forget ends the retention of every record and deletes them.
func (s *subject) forget() {
	s.t.Helper()
	s.records.Advance(25 * time.Hour)
	for deleted := 1; deleted > 0; {
		var err error
		if deleted, err = s.records.Purge(s.t.Context(), 1000); err != nil {
			s.t.Fatal(err)
		}
	}
}

// measured returns the memory in use when every connection has ended, and demands that
// its goroutines have, too.
func (s *subject) measured() uint64 {
	s.t.Helper()
	s.forget()
	labtest.Eventually(s.t, "the goroutines of the connections end", func() bool { return runtime.NumGoroutine() <= s.goroutines+lingering })
	return settled()
}

// measure records the memory in use after a quarter of the requests.
func (s *subject) measure() { s.t.Helper(); s.heap, s.before = s.measured(), s.ran }

func (s *subject) report() {
	s.t.Helper()
	for _, failure := range s.failures {
		s.t.Error(failure)
	}
	grown, runs := int64(s.measured())-int64(s.heap), s.ran-s.before
	if most := int64(others + runs*perRun); grown > most {
		s.t.Errorf("the heap has grown by %d KiB beside the records, want at most %d", grown>>10, most>>10)
	}
	s.t.Logf("%d streams are malformed, of %d; %d failures; %d runs and %d claims of all streams; heap %+d KiB, goroutines %+d",
		s.malformed, s.sent, s.wrong, s.ran, s.store.claims.Load(), grown>>10, runtime.NumGoroutine()-s.goroutines)
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package blob_test

import (
	"path/filepath"
	"testing"
)

const (
	exportSize = 256 << 20
	smallSize  = 3 << 20
	mostMemory = 2 << 20 // above the bare server
	mostOnS3   = 16 << 20
)

// A response of 256 MiB takes at most 2 MiB of memory above the server without the
// middleware, when it is made and when it is replayed. Each is measured in a new process,
// after an export of 3 MiB, which loads all code: as the largest growth of the heap and
// the resident set of the process, from a heap without garbage. The pages of the
// temporary files are the system's, which takes them back when it needs them.
func TestR35MemoryIsBounded(t *testing.T) {
	for _, framework := range []string{"nethttp", "fiber"} {
		t.Run(framework, func(t *testing.T) {
			bare := measure(t, serverPlan{Framework: framework})
			directory := t.TempDir()
			got := measure(t, serverPlan{
				Framework: framework, Guarded: true, Directory: directory, Spool: t.TempDir(), Size: exportSize,
			})
			report(t, got, bare, mostMemory)
			if files, err := filepath.Glob(filepath.Join(directory, "reprise", "*", "*")); err != nil || len(files) != 2 {
				t.Errorf("the bucket has %v, %v", files, err)
			}
		})
	}
}

// report compares with the bare server.
func report(t *testing.T, got, bare [2]peak, most int64) {
	t.Helper()
	for i, run := range []string{"first", "replay"} {
		resident, heap := got[i].Resident-bare[i].Resident, got[i].Heap-bare[i].Heap
		t.Logf("%s: resident %+.2f MiB (bare %.2f), heap %+.2f MiB (bare %.2f)", run, mib(resident), mib(bare[i].Resident), mib(heap), mib(bare[i].Heap))
		if resident > most || heap > most {
			t.Errorf("%s: more than %.0f MiB above the bare server", run, mib(most))
		}
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// measure returns the memory that a first request and a retry take.
func measure(t *testing.T, plan serverPlan) (peaks [2]peak) {
	t.Helper()
	p := start(t, plan)
	for range 2 {
		p.export(t, smallSize)
	}
	p.peak(t)
	for i := range peaks {
		header := p.export(t, exportSize)
		if replayed := header.Get("Idempotent-Replayed") == "true"; replayed != (plan.Guarded && i == 1) {
			t.Errorf("request %d: replayed %t", i, replayed)
		}
		peaks[i] = p.peak(t)
	}
	return peaks
}

// On S3 the cloud's client has its own buffers, which the documentation describes.
func TestR35MemoryOnS3(t *testing.T) {
	server := startS3(t)
	bare := measure(t, serverPlan{Framework: "nethttp"})
	got := measure(t, serverPlan{Framework: "nethttp", Guarded: true, Endpoint: server.URL, Spool: t.TempDir(), Size: exportSize})
	report(t, got, bare, mostOnS3)
}

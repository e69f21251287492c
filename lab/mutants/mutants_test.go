// Package mutants breaks the code that batches calls, one line at a time, and demands
// that the test that is named for the rule notices.
package mutants

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutant is a line of a file in place of another, and the test that has to fail with it.
type mutant struct {
	name     string
	file     string // from the root of the repository
	old, new string // old is in the file once
	pkg      string // of the test, from the root
	test     string
}

const (
	root = "../.." // of the repository

	batchingRoom = "core/batching"
	queueFile    = batchingRoom + "/queue.go"
	sendFile     = batchingRoom + "/send.go"
	callFile     = batchingRoom + "/call.go"

	redisRoom    = "store/redis"
	pipelineFile = redisRoom + "/pipeline.go"
	connFile     = redisRoom + "/pipeline_conn.go"
	combineFile  = redisRoom + "/combine.go"
	redisLab     = "lab/redis"
)

var mutants = []mutant{
	{
		"a withdrawn call stays in the queue", queueFile,
		"\t\tq.remove(c)\n\t\tc.enter(idle)\n", "\t\tc.enter(idle)\n",
		batchingRoom, "TestACallThatWaitsIsWithdrawn",
	},
	{
		"what has ended is sent", queueFile,
		"if err := c.ctx.Err(); err != nil {\n\t\t\tq.remove(c)", "if err := c.ctx.Err(); false {\n\t\t\tq.remove(c)",
		batchingRoom, "TestACallThatLeftBeforeItsBatchIsSentIsLeftOut",
	},
	{
		"the oldest sends for the others", queueFile,
		"if len(batch) != 1 || batch[0].call != c ||", "if false ||",
		batchingRoom, "TestTheOldestDoesNotSendForTheOthers",
	},
	{
		"the first that leaves ends the batch", sendFile,
		"b != nil && b.waiting.Add(-1) == 0", "b != nil && b.waiting.Add(-1) >= 0",
		batchingRoom, "TestALateCallFailsAlone",
	},
	{
		"nobody ends the batch", sendFile,
		"\t\tb.cancel()\n", "",
		batchingRoom, "TestTheLastCallerEndsTheBatch",
	},
	{
		"a batch has any size", queueFile,
		"size > q.config.MaxBytes && len(batch) > 0", "false",
		batchingRoom, "TestABatchIsBounded",
	},
	{
		"a large call waits", queueFile,
		"if c.Size > q.config.Large {", "if false {",
		batchingRoom, "TestABatchIsBounded",
	},
	{
		"an impatient call waits", queueFile,
		"return !bounded || time.Until(deadline) >= q.config.Patience", "return time.Until(deadline) > 0 || !bounded",
		batchingRoom, "TestAnImpatientCallDoesNotWaitForALane",
	},
	{
		"any call opens a lane", queueFile,
		"q.waiting > q.busy*q.config.PerLane", "q.waiting > 0",
		batchingRoom, "TestLanesOpenWithTheCallsThatWait",
	},
	{
		"the youngest goes first", queueFile,
		"c := q.first\n", "c := q.last\n",
		batchingRoom, "TestTheOldestGoFirst",
	},
	{
		"a panic leaves calls without an end", sendFile,
		"fail(calls, &PanicError{Value: recover(), Stack: debug.Stack()})", "_, _ = recover(), debug.Stack",
		batchingRoom, "TestASenderThatFailsKeepsNothing",
	},
	{
		"a forgotten call has no end", sendFile,
		"\t\t\tfail(calls, ErrUnfinished)\n", "",
		batchingRoom, "TestASenderThatFailsKeepsNothing",
	},
	{
		"a goroutine that ends keeps its lane", queueFile,
		"\t\tif !over { // Send ended this goroutine\n\t\t\tq.pass(nil)", "\t\tif false {\n\t\t\tq.pass(nil)",
		batchingRoom, "TestASenderThatFailsKeepsNothing",
	},
	{
		"an old wake-up is taken for a new one", queueFile,
		"case <-c.wake: // Send ended the goroutine of an earlier Do", "case <-(chan struct{})(nil):",
		batchingRoom, "TestASenderThatFailsKeepsNothing",
	},
	{
		"a stale end finishes the next call", callFile,
		"if c.advance(s.generation, sent, done) ||", "if c.advance(c.generation(), sent, done) ||",
		batchingRoom, "TestAStaleSentFinishesNothing",
	},
	{
		"a call is used again while a sender has it", queueFile,
		"\tc.refs.Add(1)\n", "",
		batchingRoom, "TestAnAbandonedCallIsItsSenders",
	},
	{
		"a withdrawn call is begun", callFile,
		"return s.call.advance(s.generation, taken, sent) || s.is(sent)", "return s.call.advance(s.generation, taken, sent) || true",
		batchingRoom, "TestACallIsWithdrawnUntilItIsBegun",
	},

	{
		"a connection whose password was refused is used", connFile,
		"if err := sticky.Ping(ctx).Err(); err != nil {", "if err := sticky.Ping(ctx).Err(); err != nil && !isReply(err) {",
		redisLab, "TestRedisAPipelineWithoutAPasswordSendsNothing",
	},
	{
		"nobody notices that a server is silent", connFile,
		"if !progress && now.Sub(oldest) >= c.limits.read {", "if !progress && now.Sub(oldest) < 0 {",
		redisLab, "TestRedisAHalfOpenPipelineIsUnknownInTime",
	},
	{
		"calls in flight are forgotten with their connection", connFile,
		"call.Finish(fmt.Errorf(\"%w: %w\", errNoAnswer, err))", "_ = call",
		redisLab, "TestRedisAPipelineThatIsCutLosesNoCall",
	},
	{
		"a reply that is none to its command is believed", connFile,
		"if !r.answers(i) {", "if i < 0 && !r.answers(i) {",
		redisRoom, "TestACallNeverGetsTheAnswerOfAnother",
	},
	{
		"a connection without authentication is kept", connFile,
		"strings.HasPrefix(text, \"NOAUTH \")", "text == \"\"",
		redisRoom, "TestAConnectionWithoutAuthenticationIsReplaced",
	},
	{
		"an idle connection stays open", connFile,
		"case now.Sub(c.lastWrite) >= c.limits.idle:", "case now.IsZero():",
		redisLab, "TestRedisAnIdlePipelineIsClosed",
	},
	{
		"a closed client is not noticed", pipelineFile,
		"\t\tn.sample.Store(true)\n", "",
		redisLab, "TestRedisAPipelineEndsWithItsClient",
	},
	{
		"sentinels are not asked", pipelineFile,
		"if n.sentinel {", "if n.sentinel && now.IsZero() {",
		redisLab, "TestRedisAPipelineFollowsTheSentinels",
	},

	{
		"a batch sends the memory of callers that left", combineFile,
		"d.payload = append(blob(nil), c.payload...)", "d.payload = c.payload",
		redisRoom, "TestACommandThatIsLeftIsTheSenders",
	},
	{
		"a batch of one call has no end", combineFile,
		"if _, bounded := ctx.Deadline(); !bounded {", "if len(batch) > 1 {",
		redisRoom, "TestNoBatchHoldsItsLaneForEver",
	},
	{
		"a batch lasts as long as it takes", combineFile,
		"ctx, cancel = context.WithTimeout(ctx, b.longest)", "ctx, cancel = context.WithCancel(ctx)",
		redisRoom, "TestNoBatchHoldsItsLaneForEver",
	},
	{
		"a caller waits for its batch past its time", combineFile,
		"err := b.queue.Do(ctx, call)", "err := b.queue.Do(context.WithoutCancel(ctx), call)",
		redisRoom, "TestACallerLeavesItsBatchInTime",
	},
	{
		"a caller waits for a pipeline past its time", pipelineFile,
		"err := n.queue.Do(ctx, call)", "err := n.queue.Do(context.WithoutCancel(ctx), call)",
		redisRoom, "TestACallLeavesItsPipelineInTime",
	},
	{
		"replays wait for the confirmation of writes", combineFile,
		"if confirm != nil && commands[i].unconfirmed {", "if confirm != nil && i >= 0 {",
		redisRoom, "TestOnlyWritesWaitForTheirConfirmation",
	},
}

// Code that changes leaves no mutant behind that breaks nothing any more.
func TestEveryMutantIsUpToDate(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		m.source(t)
	}
}

// A rule that no test holds is a comment. Each mutant compiles a package and runs its
// test, which takes minutes: make mutants.
func TestEveryMutantDies(t *testing.T) {
	t.Parallel()
	if os.Getenv("REPRISE_MUTANTS") == "" {
		t.Skip("make mutants runs it")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			if m.survives(t, root) {
				t.Errorf("%s passes although %s", m.test, m.name)
			}
		})
	}
}

// source returns the file of m, which has the line of m once.
func (m mutant) source(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Errorf("%s has %q %d times, want once: bring the table up to date", m.file, m.old, n)
	}
	return string(source)
}

// survives reports whether the test of m passes with m.
func (m mutant) survives(t *testing.T, root string) bool {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(m.file))
	dir := t.TempDir()
	broken, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	write(t, broken, []byte(strings.Replace(m.source(t), m.old, m.new, 1)))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: broken}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, overlay, replace)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	test := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=60s", "-overlay="+overlay, "-run=^"+m.test+"$", "-v", "./"+m.pkg)
	test.Dir = root
	output, err := test.CombinedOutput()
	switch {
	case strings.Contains(string(output), "[build failed]") || strings.Contains(string(output), "[setup failed]"):
		t.Fatalf("the mutant does not compile:\n%s", output)
	case m.skipped(string(output)):
		t.Skip("the test needs a server that is not here")
	case !strings.Contains(string(output), "=== RUN   "+m.test):
		t.Fatalf("%s did not run:\n%s", m.test, output)
	}
	return err == nil
}

// skipped reports whether the test of m, or one around it, was skipped.
func (m mutant) skipped(output string) bool {
	for line := range strings.Lines(output) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- SKIP: ")
		if name, _, _ = strings.Cut(name, " "); ok && (m.test == name || strings.HasPrefix(m.test, name+"/")) {
			return true
		}
	}
	return false
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

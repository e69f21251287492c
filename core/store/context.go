package store

import "context"

// ContextKey is where an adapter keeps the context of a run in a framework's own request
// context, such as *gin.Context, which finds values by strings only. Lookups in the
// context of a handler go on there, so that handlers may pass either context.
const ContextKey = "github.com/reprise-go/reprise"

// RunContext returns the context of the run that an adapter put under [ContextKey] into a
// framework's context, and false if there is none. A store whose [Transactor] puts
// values into a handler's context looks for them there after it found none in ctx itself.
func RunContext(ctx context.Context) (context.Context, bool) {
	run, ok := ctx.Value(ContextKey).(context.Context)
	return run, ok
}

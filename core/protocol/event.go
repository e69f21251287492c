package protocol

import (
	"context"
	"log/slog"

	reprise "github.com/reprise-go/reprise/core"
)

// The kinds of events that a guard reports, besides those of its engine.
var (
	// EventPanic says that a function of the policy panicked beside the outcome of its
	// request.
	EventPanic = &reprise.EventKind{Name: "panic", Level: slog.LevelError, Message: "reprise: a function of the policy panicked"}

	// EventBlobError says that a response body could not be written to, or read from, the
	// blob store: see [Offloading].
	EventBlobError = &reprise.EventKind{
		Name: "blob-error", Level: slog.LevelError, Message: "reprise: a response body could not be written to, or read from, the blob store",
	}

	// EventDescription says that the description of a request has its key in it, and is not
	// kept: see [Config.Describe].
	EventDescription = &reprise.EventKind{
		Name: "description-withheld", Level: slog.LevelWarn,
		Message: "reprise: Config.Describe returned a text with the key in it, which the record does not keep",
	}

	// EventReported says that an error stands beside a complete response that is no
	// failure: see [Ending].
	EventReported = &reprise.EventKind{
		Name: "error-reported", Level: slog.LevelWarn,
		Message: "reprise: a handler reported an error beside a complete response, which is its result",
	}

	// EventBodyConsumed says that a request was refused because a layer outside consumed
	// its body: once for each policy, with the likely mistake as the Reason.
	EventBodyConsumed = &reprise.EventKind{
		Name: "body-consumed", Level: slog.LevelWarn, Always: true,
		Message: "reprise: a request was refused because nothing, or only a rest, is left of its body",
	}

	// EventBodyOmitted says that a response body was not kept, because it is too large: once
	// for each policy, with the limit to raise as the Reason.
	EventBodyOmitted = &reprise.EventKind{
		Name: "body-omitted", Level: slog.LevelWarn, Always: true,
		Message: "reprise: a response body is not kept, because it is too large; its retries do not get it",
	}
)

// kinds are those of a guard, which declares them.
var kinds = []*reprise.EventKind{EventPanic, EventBlobError, EventDescription, EventReported, EventBodyConsumed, EventBodyOmitted}

// count counts a refusal before Begin, and notifies the engine's observer of it.
func (g *Guard) count(ctx context.Context, code Code, err error) {
	g.engine.Refuse(ctx, g.cfg.Name, g.problems.of(code).Outcome, err)
}

// report notifies the engine's observer of something that the engine did not see.
func (g *Guard) report(ctx context.Context, event reprise.Event) {
	event.Label = g.cfg.Name
	g.engine.Report(ctx, event)
}

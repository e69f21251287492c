package reprisefiber3_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	reprise "github.com/reprise-go/reprise/core"
)

// early says that a request has no timeout: on a busy machine it may take longer.
func early(c fiber.Ctx) bool { return c.Get("X-Late") == "" }

// Fiber's timeout outside writes its response where the handler writes, so a handler that
// outlives it has none to keep.
func TestR33HandlersThatOutliveATimeoutAreCut(t *testing.T) {
	t.Parallel()
	harness.SkipRaces(t)
	next := timeout.New(fiber.Ctx.Next, timeout.Config{Next: early, Timeout: short})
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		proceed, ended := make(chan struct{}), make(chan struct{}, 2)
		ends := func(c fiber.Ctx) error {
			defer func() { ended <- struct{}{} }()
			return c.Next()
		}
		s := serveOne(t, preset, []any{next, ends}, nil, func(c fiber.Ctx) error {
			if c.Get("X-Late") != "" {
				<-proceed
			}
			return c.Status(fiber.StatusCreated).SendString("done")
		})
		if first := s.Post("k", "X-Late: yes"); first.Status != http.StatusRequestTimeout {
			t.Errorf("the client of the late handler got %+v", first)
		}
		if again := s.Post("k"); again.Status != http.StatusConflict || !strings.Contains(again.Body, "in-progress") {
			t.Errorf("the retry got %+v while the handler runs", again)
		}
		<-ended
		close(proceed)
		<-ended
		again := s.Post("k")
		switch {
		case preset == reprise.Recoverable && (again.Status != http.StatusCreated || again.Body != "done" || again.Replayed):
			t.Errorf("the retry of a released key got %+v", again)
		case preset == reprise.AtMostOnce && (again.Status != http.StatusConflict || !strings.Contains(again.Body, "result-unavailable")):
			t.Errorf("the retry got %+v", again)
		}
	}
}

// While the timeout writes its response, that of a handler that returns is a mixture.
// Newer releases say too late that they do (docs/guides/fiber.md).
func TestR33MixedResponsesAreNotKept(t *testing.T) {
	t.Parallel()
	type reclaimer interface {
		ScheduleReclaim(done <-chan struct{}, cancel context.CancelFunc)
	}
	if _, late := any(new(fiber.DefaultCtx)).(reclaimer); late {
		t.Skip("this release of Fiber marks a context after OnTimeout")
	}
	harness.SkipRaces(t)
	written, ended := make(chan struct{}), make(chan struct{})
	outside := timeout.New(func(c fiber.Ctx) error {
		defer func() {
			if c.Get("X-Late") != "" {
				close(ended)
			}
		}()
		return c.Next()
	}, timeout.Config{Next: early, Timeout: short, OnTimeout: func(c fiber.Ctx) error {
		c.Response().SetBodyString("late")
		close(written)
		<-ended
		return c.SendStatus(fiber.StatusServiceUnavailable)
	}})
	s := serveOne(t, reprise.AtMostOnce, []any{outside}, nil, func(c fiber.Ctx) error {
		c.Status(fiber.StatusCreated)
		<-written
		return nil
	})
	if first := s.Post("k", "X-Late: yes"); first.Status != http.StatusServiceUnavailable {
		t.Errorf("the client of the late handler got %+v", first)
	}
	if again := s.Post("k"); again.Status != http.StatusConflict || !strings.Contains(again.Body, "result-unavailable") {
		t.Errorf("the retry got %+v", again)
	}
	s.Ran(1)
}

// A stream that began before the timeout is either recorded, where Fiber closes it, or
// cut.
func TestR33StreamsThatATimeoutReplacesEnd(t *testing.T) {
	t.Parallel()
	harness.SkipRaces(t)
	proceed, ended := make(chan struct{}), make(chan struct{}, 2)
	late := timeout.New(func(c fiber.Ctx) error {
		err := c.Next()
		if c.Get("X-Late") != "" {
			<-proceed
		}
		ended <- struct{}{}
		return err
	}, timeout.Config{Next: early, Timeout: short})
	s := serveOne(t, reprise.AtMostOnce, []any{late}, nil, func(c fiber.Ctx) error {
		return c.SendStream(strings.NewReader("streamed"))
	})
	if first := s.Post("k", "X-Late: yes"); first.Status != http.StatusRequestTimeout {
		t.Errorf("the client of the late chain got %+v", first)
	}
	close(proceed)
	<-ended
	if again := s.Retry("k"); !again.Replayed && !strings.Contains(again.Body, "result-unavailable") || again.Replayed && again.Body != "streamed" {
		t.Errorf("the retry got %+v", again)
	}
	s.Ran(1)
}

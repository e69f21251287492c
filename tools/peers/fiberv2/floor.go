package main

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/tools/peers/guards"
)

// floor does the minimum that the design of Reprise requires of any middleware, and is
// unreliable: the digests of key and request, a random owner, one record in a map, one
// copy of the response. It has no leases, no fencing, no expiry, no bounds, and it keeps
// one header field. The difference to Reprise is the cost of the engine; its own cost is
// unavoidable.
type floor struct {
	mu      sync.Mutex
	records map[[32]byte]*floorRecord
}

type floorRecord struct {
	fingerprint [32]byte
	owner       [16]byte
	done        bool
	status      int
	contentType string
	body        []byte
}

func (f *floor) handle(c *fiber.Ctx) error {
	key := c.Get(guards.Header)
	if key == "" {
		return c.Next()
	}
	var stack [512]byte
	id := sha256.Sum256(append(append(stack[:0], "floor/id"...), key...))
	b := append(append(stack[:0], key...), c.Method()...)
	b = append(append(b, c.Request().RequestURI()...), c.Request().Header.ContentType()...)
	r := &floorRecord{fingerprint: sha256.Sum256(append(b, c.Request().Body()...))}
	_, _ = rand.Read(r.owner[:])

	f.mu.Lock()
	if f.records == nil {
		f.records = make(map[[32]byte]*floorRecord)
	}
	kept := f.records[id]
	done := kept != nil && kept.done
	if kept == nil {
		f.records[id] = r
	}
	f.mu.Unlock()
	switch {
	case kept == nil:
	case kept.fingerprint != r.fingerprint:
		return c.SendStatus(fiber.StatusUnprocessableEntity)
	case !done:
		return c.SendStatus(fiber.StatusConflict)
	default:
		c.Set(fiber.HeaderContentType, kept.contentType)
		c.Set(new(protocol.Config).ControlFields().Replayed, "true")
		return c.Status(kept.status).Send(kept.body)
	}

	if err := c.Next(); err != nil {
		return err
	}
	resp := c.Response()
	body := append(make([]byte, 0, len(resp.Body())), resp.Body()...)
	f.mu.Lock()
	defer f.mu.Unlock()
	r.done, r.status, r.contentType, r.body = true, resp.StatusCode(), string(resp.Header.ContentType()), body
	return nil
}

package reprisegrpc

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reprise-go/reprise/core/protocol"
)

// stream takes the metadata of a call.
type stream struct {
	grpc.ServerTransportStream

	sent metadata.MD
}

func (s *stream) SetHeader(md metadata.MD) error  { s.sent = metadata.Join(s.sent, md); return nil }
func (s *stream) SetTrailer(md metadata.MD) error { s.sent = metadata.Join(s.sent, md); return nil }

// A response that cannot be read is not replayed, and so not marked as replayed: a client
// that counts replays as successes would take the error for one.
func TestAnUnreadableResponseIsNoReplay(t *testing.T) {
	t.Parallel()
	var s stream
	mark := protocol.NewHeader(protocol.Field{Name: "idempotency-replayed", Value: "true"})
	_, err := send(grpc.NewContextWithServerTransportStream(t.Context(), &s), protocol.CallResult{Type: "no.such.Type", Body: []byte{0xff}, Header: mark})
	if status.Code(err) != codes.DataLoss || len(s.sent) != 0 {
		t.Errorf("sent %v with %v, want DATA_LOSS alone", s.sent, err)
	}
}

package main

import (
	"context"
	"encoding/hex"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-go/reprise/core/store"
)

// deadLetters keeps each parked message under its own subject. It is needed because a
// stream with the retention policy WorkQueue or Interest deletes a message that is
// terminated.
type deadLetters struct {
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openDeadLetters(ctx context.Context, js jetstream.JetStream) (deadLetters, error) {
	stream, err := openStream(ctx, js, jetstream.StreamConfig{Name: "PAYMENTS_DEAD", Subjects: []string{"dead.payments.*"}})
	return deadLetters{js, stream}, err
}

// park returns nil when the dead letter of a message is stored. Duplicates of the message
// share one dead letter while it exists. It has no Nats-Msg-Id: with one, if a person
// publishes the message again and it is parked again within the window for duplicates,
// its dead letter would be lost.
func (d deadLetters) park(ctx context.Context, msg jetstream.Msg, fingerprint store.Fingerprint, reason error) error {
	letter := nats.NewMsg("dead.payments." + hex.EncodeToString(fingerprint[:]))
	letter.Data = msg.Data()
	letter.Header.Set("Payment-Id", msg.Headers().Get(jetstream.MsgIDHeader))
	letter.Header.Set("Reason", reason.Error())
	_, err := d.js.PublishMsg(ctx, letter, jetstream.WithExpectLastSequencePerSubject(0))
	if err == nil {
		return nil
	}
	if _, missing := d.stream.GetLastMsgForSubject(ctx, letter.Subject); missing == nil {
		return nil // stored by an earlier delivery or a duplicate, or the acknowledgement was lost
	}
	return err
}

package protocol

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// The names are part of the protocol: clients look for them.
func TestControlFieldsHaveTheirNames(t *testing.T) {
	t.Parallel()
	want := ControlFields{
		Replayed: "Idempotent-Replayed", Status: "Idempotency-Status", Body: "Idempotency-Body", Expires: "Idempotency-Key-Expires",
	}
	if got := new(Config).ControlFields(); got != want {
		t.Errorf("the control fields are %+v, want %+v", got, want)
	}
}

func TestControlFieldsAreTheProtocolsOwn(t *testing.T) {
	t.Parallel()
	control := new(Config).ControlFields()
	for name, want := range map[string]bool{
		"Idempotent-Replayed": true, "idempotency-status": true, "IDEMPOTENCY-BODY": true,
		"Idempotency-Key-Expires": false, "Idempotency-Key": false, "": false,
	} {
		if got := control.reserve(name); got != want {
			t.Errorf("%q is reserved: %t, want %t", name, got, want)
		}
	}
}

func TestReplayedHeaderHasNoOtherMeaning(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"": true, "Idempotent-Replayed": true, "idempotent-replayed": true, "X-Order-Repeated": true, "Idempotency-Replay": true,
		"X Y": false, "X\n": false, "Idempotency-Status": false, "idempotency-body": false, "Idempotency-Key-Expires": false,
		"X-Operation": false, "x-alias": false, "Retry-After": false, "Cache-Control": false, "Link": false, "Location": false,
		"Content-Type": false, "Etag": false, "Set-Cookie": false, "X-Request-Id": false, "Grpc-Status": false, "X-Mark-Bin": false,
	} {
		cfg, err := Config{Key: KeyHeader("X-Operation", "X-Alias"), Announce: Announcing{ReplayedHeader: name}}.withDefaults()
		if valid && (err != nil || cfg.Announce.ReplayedHeader == "") || !valid && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %q, %v; want it valid: %t", name, cfg.Announce.ReplayedHeader, err, valid)
		}
	}
	control := (&Config{Announce: Announcing{ReplayedHeader: "X-Order-Repeated"}}).ControlFields()
	for _, name := range []string{"x-order-repeated", "Idempotent-Replayed", "Idempotency-Status"} {
		if !control.reserve(name) {
			t.Errorf("a handler may set %s", name)
		}
	}
	if _, err := newFieldPolicy([]string{"X-Order-Repeated"}, control); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a list of kept fields with the marker: %v", err)
	}
}

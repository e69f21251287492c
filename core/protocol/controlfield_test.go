package protocol

import "testing"

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

package adaptertest

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// secretBytes are the bytes of a secret with an ID: something to look for in a record.
func secretBytes(id string) []byte { return bytes.Repeat([]byte("master secret "+id+" "), 3) }

// sealing returns a policy that seals with a secret.
func (e *env) sealing(id string) protocol.Sealing {
	e.Helper()
	secret, err := protocol.NewSecret(id, secretBytes(id))
	if err != nil {
		e.Fatal(err)
	}
	return protocol.Sealing{Secret: secret}
}

// sealedFor is the operation and the request that a response is sealed for.
type sealedFor struct {
	key         string
	id          store.ID
	fingerprint store.Fingerprint
}

// sealedFor names the operation of c, whose key is a bare one.
func (e *env) sealedFor(c call) sealedFor {
	e.Helper()
	fingerprint, err := protocol.DefaultFingerprint(c.request(), c.keys[0], []byte(c.body))
	if err != nil {
		e.Fatal(err)
	}
	return sealedFor{c.keys[0], store.DeriveID(c.tenant, "", c.keys[0]), fingerprint}
}

// recorded returns the stored payload of c.
func (srv *server) recorded(c call) []byte {
	srv.Helper()
	who := srv.sealedFor(c)
	got, err := srv.store.Claim(srv.Context(), store.ClaimRequest{
		ID: who.id, Owner: store.NewOwner(), Fingerprint: who.fingerprint, Lease: long, Policy: store.Policy{Retention: long},
	})
	if err != nil || got.Outcome != store.Completed {
		srv.Fatalf("the store answers %v, %v, want a completed record", got.Outcome, err)
	}
	return got.Payload
}

var sealingCases = []testCase{
	{
		conformance.Case{ID: "R42c", Rule: "A sealed response is replayed byte for byte, and the record has nothing of it, of the key or of the secret; what was recorded before sealing is replayed too.", Source: "profile"},
		func(e *env) {
			seal := e.sealing("2026-11")
			srv := e.serve(Options{Guard: protocol.Config{Seal: seal}})
			secret := Program{Status: 201, Headers: []Pair{{"X-Private", "a private field"}}, Body: strings.Repeat("a private body ", 50)}
			everyByte := Program{Status: 200, BodyBase64: make([]byte, 256)}
			for i := range everyByte.BodyBase64 {
				everyByte.BodyBase64[i] = byte(i)
			}
			for _, p := range []Program{secret, everyByte, {Status: 204}} {
				c := e.post(p).freshKey()
				srv.replays(c, srv.run(c))
				payload := srv.recorded(c)
				for _, private := range []string{"private", c.keys[0], c.tenant, "master secret"} {
					if bytes.Contains(payload, []byte(private)) {
						srv.Errorf("the record has %q:\n%s", private, hex.Dump(payload))
					}
				}
				who := e.sealedFor(c)
				opened, err := seal.Open(payload, who.key, who.id, who.fingerprint)
				if err != nil {
					srv.Fatalf("with the key the record is not opened: %v", err)
				}
				if r, err := stored.Decode(opened); err != nil || r.Status != p.Status {
					srv.Errorf("with the key the record is opened as %d, %v", r.Status, err)
				}
			}
			c := e.post(created).freshKey()
			before, err := stored.Encode(protocol.Response{Status: 202, Body: []byte("of before")})
			if err != nil {
				srv.Fatal(err)
			}
			srv.claims(c, store.ClaimRequest{}).completes(string(before))
			if a := srv.send(c); a.status != 202 || a.body != "of before" || a.value(srv.control.Replayed) != "true" {
				srv.Errorf("what was recorded before sealing is replayed as %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R42d", Rule: "A sealed response that is damaged, of another operation, request, key or secret, and one that is not sealed where the policy is strict, is not served in part, and nothing runs.", Source: "profile"},
		func(e *env) {
			seal := e.sealing("2026-11")
			seal.Strict = true
			srv := e.serve(Options{Guard: protocol.Config{Seal: seal}})
			answer := protocol.Response{Status: 201, Body: []byte("a private body")}
			encoded, err := stored.Encode(answer)
			if err != nil {
				srv.Fatal(err)
			}
			sealed := func(by protocol.Sealing, who sealedFor) []byte {
				payload, err := by.Seal(encoded, who.key, who.id, who.fingerprint)
				if err != nil {
					srv.Fatal(err)
				}
				return payload
			}
			for what, payloadOf := range inOrder(map[string]func(sealedFor) []byte{
				"not sealed":                 func(sealedFor) []byte { return encoded },
				"sealed with another secret": func(who sealedFor) []byte { return sealed(e.sealing("2026-10"), who) },
				"of another operation": func(who sealedFor) []byte {
					who.id[0] ^= 1
					return sealed(seal, who)
				},
				"of another request": func(who sealedFor) []byte {
					who.fingerprint[0] ^= 1
					return sealed(seal, who)
				},
				"of another key": func(who sealedFor) []byte {
					who.key += "1"
					return sealed(seal, who)
				},
				"cut short": func(who sealedFor) []byte {
					payload := sealed(seal, who)
					return payload[:len(payload)-1]
				},
				"a byte longer": func(who sealedFor) []byte { return append(sealed(seal, who), 0) },
				"of a later version": func(who sealedFor) []byte {
					payload := sealed(seal, who)
					payload[0]++
					return payload
				},
				"with a bit changed": func(who sealedFor) []byte {
					payload := slices.Clone(sealed(seal, who))
					payload[len(payload)-20] ^= 1
					return payload
				},
			}) {
				c := e.post(created).freshKey()
				srv.claims(c, store.ClaimRequest{}).completes(string(payloadOf(e.sealedFor(c))))
				a := srv.send(c)
				if a.status != 500 || strings.Contains(a.body, "private") {
					srv.Errorf("a record %s is answered %v", what, a)
				}
				srv.wantProblem(a, c, protocol.CodeRecordCorrupt)
			}
			srv.ran(0)
			c := e.post(created).freshKey()
			srv.claims(c, store.ClaimRequest{}).completes(string(sealed(seal, e.sealedFor(c))))
			if a := srv.send(c); a.status != 201 || a.body != string(answer.Body) {
				srv.Errorf("what was sealed for the request is answered %v", a)
			}
		},
	},
}

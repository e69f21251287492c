package etcd_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

// The program opens etcd, as it does the other stores: the server is examined, a stuck
// record is found by its key and resolved, and a mistaken prefix is no "nothing is
// stuck". It speaks TLS, and logs in.
func TestProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "reprise")
	if err := etcdcluster.Build("../../cmd/reprise", program); err != nil {
		t.Fatal(err)
	}
	addrs := etcdcluster.Start(t, 1).Addrs()
	prefix := etcdcluster.Prefix()
	st := etcdcluster.Open(t, etcdcluster.Connect(t, addrs...), prefix)
	run := func(code int, args string, wants ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, strings.Fields("--store etcd://"+strings.Join(addrs, ",")+" --prefix "+prefix+" "+args)...)
		cmd.Stdin = strings.NewReader("order-17\n")
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%s: exit code %d, want %d: %v\n%s", args, got, code, err, out)
		}
		if strings.Contains(string(out), "secret") {
			t.Errorf("%s: the password is shown\n%s", args, out)
		}
		for _, want := range wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: want %q\n%s", args, want, out)
			}
		}
	}
	run(3, "stuck", "there is no record at all in etcd "+addrs[0]+", prefix "+prefix)
	r := claimOf("stuck")
	r.ID, r.Policy.AtMostOnce, r.Lease = store.DeriveID("acme", "", "order-17"), true, 100*time.Millisecond
	got, err := st.Claim(t.Context(), r)
	if err != nil || got.Outcome != store.Claimed {
		t.Fatal(got, err)
	}
	etcdcluster.Eventually(t, func() error {
		found, err := st.Inspect(t.Context(), r.ID)
		if err == nil && found.State != store.StateLapsed {
			err = fmt.Errorf("it is %v", found.State)
		}
		return err
	})
	run(1, "doctor", "! single-member: ", "every operation works")
	run(1, "stuck", r.ID.String()+" ", "1 record needs a person")
	run(3, "stuck --prefix typo/", "is --prefix as in the service? This server has records in "+prefix)
	run(0, "find --scope acme", r.ID.String(), "lapsed")
	run(0, fmt.Sprintf("resolve %s --answer 201 --yes --fence %d --reason paid", r.ID.Short(), got.Fence), "The answer is kept")
	run(0, "list --json", `"state": "completed"`, `"resolved": true`)
	run(2, "list --schema x", "--schema is not for a store in etcd")
	for _, url := range []string{"etcd://user:secret@", "etcd://user:1/secret@host", "etcd://user:1#secret@host", "etcd://a,,b", "etcd://host/db"} {
		run(2, "list --store "+url, "the URL of etcd is not")
	}
	run(2, "list --store etcd://user:secret@host?cacert=x", "none of cacert, cert and key of etcds://")
	addr, certificate := secured(t)
	run(1, "doctor --prefix mine/ --store etcds://payments:secret@"+addr+"?cacert="+certificate, "every operation works")
	run(3, "list --prefix mine/ --store etcds://payments:wrong-secret@"+addr+"?cacert="+certificate, "opening the store: ", "authentication failed")
	run(3, "list --timeout 1s --prefix mine/ --store etcds://"+addr, "no connection to a member") // whose certificate is trusted
	run(3, "list --timeout 1s --store etcd://svc-host:secret@127.0.0.1:1", "opening the store: ", "store unreachable")
}

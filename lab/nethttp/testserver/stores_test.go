package main

import (
	"crypto/rand"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/servers/program"
)

func TestTwoProcessesShareAStore(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]func(t *testing.T) []string{
		"redis cluster": func(t *testing.T) []string {
			t.Helper()
			nodes := servers.Redis.StartCluster(t).Nodes
			return []string{"-store", "redis", "-redis-url", nodes[0].URL() + "?addr=" + nodes[1].Addr()}
		},
		"redis sentinels": func(t *testing.T) []string {
			t.Helper()
			set := servers.Redis.StartSentinel(t)
			addrs := set.SentinelAddrs()
			return []string{"-store", "redis", "-redis-url", "redis://" + addrs[0] + "?master_name=" + set.MasterName + "&addr=" + addrs[1]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := flags(t)
			first, second := program.Start(t, args...), program.Start(t, args...) // both create their tables in the same empty database
			a, b := listening(t, first), listening(t, second)
			m := message{target: "/t/shared", key: rand.Text()}
			a.do(t, m).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
			b.do(t, m).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
			if executions, _ := b.counts(t, "shared"); executions != 0 {
				t.Errorf("%d executions in the other process, want none", executions)
			}
			for _, p := range []*process{a, b} {
				p.Signal(t, syscall.SIGTERM)
				p.End(t)
			}
		})
	}
}

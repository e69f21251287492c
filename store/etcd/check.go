package repriseetcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// nearlyFull is the share of the quota, in percent, from which on it is nearly used up.
const nearlyFull = 85

// statusTimeout bounds the request to one endpoint, because the client waits for one that
// is down until the context ends.
const statusTimeout = 2 * time.Second

// Check implements [store.Checker]. It asks each endpoint of the client for its status,
// and does not write. The codes that it reports are listed in docs/operate/etcd.md, with
// those that a server shows only to root.
func (s *Store) Check(ctx context.Context) (findings []store.Finding, err error) {
	add := func(holds bool, code string, severity store.Severity, format string, args ...any) {
		if holds {
			findings = append(findings, store.Finding{Code: code, Severity: severity, Detail: fmt.Sprintf(format, args...)})
		}
	}
	if members, err := s.client.MemberList(ctx); err == nil {
		voters := len(slices.DeleteFunc(members.Members, func(m *etcdserverpb.Member) bool { return m.IsLearner }))
		add(voters == 1, "single-member", store.Warning, "the cluster has one member: no operation runs while it is down, and its disk is the only copy of the records; use three or five members")
		add(voters%2 == 0, "even-members", store.Warning, "the cluster has %d members, and survives no more failures than with %d; use an odd number", voters, voters-1)
	} else if !answered(err, rpctypes.ErrPermissionDenied) {
		return nil, classify(err)
	}
	if alarms, err := s.client.AlarmList(ctx); err == nil {
		for _, a := range alarms.Alarms {
			add(a.Alarm == etcdserverpb.AlarmType_NOSPACE, "no-space", store.Unsafe, "member %x has no space left, so new operations are refused, and no result is recorded; compact, defragment, and disarm the alarm (docs/operate/etcd.md)", a.MemberID)
			add(a.Alarm == etcdserverpb.AlarmType_CORRUPT, "corrupt-member", store.Unsafe, "the data of member %x is corrupt; replace the member", a.MemberID)
		}
	} else if !answered(err, rpctypes.ErrPermissionDenied) {
		return nil, classify(err)
	}
	for _, endpoint := range s.client.Endpoints() {
		asking, cancel := context.WithTimeout(ctx, statusTimeout)
		status, err := s.client.Status(asking, endpoint)
		cancel()
		if err != nil { // one that refuses the permission answers
			add(!answered(err, rpctypes.ErrPermissionDenied), "member-away", store.Warning, "an endpoint of the client does not answer; start the member, or leave its endpoint out: %v", classify(err))
			continue
		}
		used := status.DbSize * 100 / max(status.DbSizeQuota, 1)
		add(status.IsLearner, "learner", store.Warning, "an endpoint of the client is a learner, which refuses writes; leave it out of the client's endpoints")
		add(status.DbSizeQuota > 0 && used >= nearlyFull, "space", store.Warning, "a member uses %d %% of its quota: above it new operations are refused; compact and defragment, or raise --quota-backend-bytes", used)
		add(!probe.AtLeast(status.Version, 3, 4), "server-version", store.Unsafe, "version %s is not supported; use etcd 3.4 or newer", status.Version)
	}
	return findings, nil
}

// probe tries every operation on a new record.
func (s *Store) probe(ctx context.Context) error {
	rival, err := New(s.client, s.config)
	if err != nil {
		return err
	}
	return (&probe.Probe{
		Name: "etcd", Store: s, Rival: rival,
		Read: func(ctx context.Context, id store.ID) error {
			_, err := s.Inspect(ctx, id)
			return err
		},
		Delete: func(ctx context.Context, id store.ID) error {
			return s.update(ctx, id, nil, func(now *found) (done bool, err error) {
				if !now.exists {
					return true, probe.Unexpected("no record", "the record of the probe")
				}
				return s.forget(ctx, id, now)
			})
		},
	}).Run(ctx)
}

package repriseetcd

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// Check implements [store.Checker]. It asks each endpoint of the client for its status,
// and does not write. The codes that it reports are listed in docs/operate/etcd.md, with
// those that a server shows only to root.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	var found findings
	for _, look := range []func(context.Context, *findings) error{s.checkMembers, s.checkAlarms} {
		if err := look(ctx, &found); err != nil && !answered(err, rpctypes.ErrPermissionDenied) {
			return nil, classify(err)
		}
	}
	s.checkEndpoints(ctx, &found)
	return found, nil
}

type findings []store.Finding

func (f *findings) add(code string, severity store.Severity, format string, args ...any) {
	*f = append(*f, store.Finding{Code: code, Severity: severity, Detail: fmt.Sprintf(format, args...)})
}

func (s *Store) checkMembers(ctx context.Context, f *findings) error {
	members, err := s.client.MemberList(ctx)
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range members.Members {
		if !m.IsLearner {
			voters++
		}
	}
	switch {
	case voters == 1:
		f.add("single-member", store.Warning, "the cluster has one member: no operation runs while it is down, and its disk is the only copy of the records; use three or five members")
	case voters%2 == 0:
		f.add("even-members", store.Warning, "the cluster has %d members, and survives no more failures than with %d; use an odd number", voters, voters-1)
	}
	return nil
}

func (s *Store) checkAlarms(ctx context.Context, f *findings) error {
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return err
	}
	for _, a := range alarms.Alarms {
		switch a.Alarm { //nolint:exhaustive // there is one for none
		case etcdserverpb.AlarmType_NOSPACE:
			f.add("no-space", store.Unsafe, "member %x has no space left, so new operations are refused, and no result is recorded; compact, defragment, and disarm the alarm (docs/operate/etcd.md)", a.MemberID)
		case etcdserverpb.AlarmType_CORRUPT:
			f.add("corrupt-member", store.Unsafe, "the data of member %x is corrupt; replace the member", a.MemberID)
		}
	}
	return nil
}

func (s *Store) checkEndpoints(ctx context.Context, f *findings) {
	for _, endpoint := range s.client.Endpoints() {
		status, err := s.status(ctx, endpoint)
		if answered(err, rpctypes.ErrPermissionDenied) { // so it answers
			continue
		}
		if err != nil {
			f.add("member-away", store.Warning, "an endpoint of the client does not answer; start the member, or leave its endpoint out: %v", classify(err))
			continue
		}
		if status.IsLearner {
			f.add("learner", store.Warning, "an endpoint of the client is a learner, which refuses writes; leave it out of the client's endpoints")
		}
		if used := status.DbSize * 100 / max(status.DbSizeQuota, 1); status.DbSizeQuota > 0 && used >= nearlyFull {
			f.add("space", store.Warning, "a member uses %d %% of its quota: above it new operations are refused; compact and defragment, or raise --quota-backend-bytes", used)
		}
		if !supported(status.Version) {
			f.add("server-version", store.Unsafe, "version %s is not supported; use etcd 3.4 or newer", status.Version)
		}
	}
}

// nearlyFull is the share of the quota, in percent, from which on it is nearly used up.
const nearlyFull = 85

// statusTimeout bounds the request to one endpoint, because the client waits for one that
// is down until the context ends.
const statusTimeout = 2 * time.Second

func (s *Store) status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return s.client.Status(ctx, endpoint)
}

// supported reports whether a version of a server is 3.4 or newer.
func supported(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major > 3 || major == 3 && minor >= 4)
}

// report logs the warnings among findings, and returns the unsafe ones as an error.
func report(ctx context.Context, logger *slog.Logger, findings []store.Finding) error {
	var unsafe []string
	for _, f := range findings {
		if f.Severity == store.Unsafe {
			unsafe = append(unsafe, f.Code+": "+f.Detail)
			continue
		}
		logger.LogAttrs(ctx, slog.LevelWarn, "repriseetcd: "+f.Detail, slog.String("code", f.Code))
	}
	if len(unsafe) > 0 {
		return misconfigured("%s", strings.Join(unsafe, "; "))
	}
	return nil
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

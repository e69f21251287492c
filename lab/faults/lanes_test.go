package faults_test

import (
	"strconv"
	"syscall"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// pick returns one of some things, as a number of the seed says.
func pick[T any](n uint64, of ...T) T { return of[n%uint64(len(of))] }

// between returns a duration from low to high.
func between(n uint64, low, high time.Duration) time.Duration {
	return low + time.Duration(n%uint64(high-low))
}

// The points at which processes are killed and stopped.
var points = []string{"after-claim", "mid-effect", "before-complete", "after-complete", "after-send"}

// processes kills and stops servers, one at a time, each point in its turn.
func processes(faults int) lane {
	armed := 0
	return lane{"processes", faults, func(d *decision) {
		n := pick(d.a, d.nodes...)
		passages := int(d.b>>32%6) + 1
		what := pick(d.kind, "kill", "kill", "kill", "kill", "kill", "stop", "stop", "pause", "kill anywhere", "terminate")
		point := points[armed%len(points)]
		switch what {
		case "kill":
			armed++
			if !n.arm(point, "kill", passages, 5*time.Second) {
				return
			}
			<-n.exited
			d.count("process killed "+point, 1)
			n.kill()
			n.restart(d)
		case "stop":
			armed++
			if !n.arm(point, "stop", passages, 5*time.Second) {
				return
			}
			d.count("process stopped "+point, 1)
			sleepFor(pick(d.a>>32, lease/4, lease+lease/4))
			n.resume()
		case "pause":
			n.signal(syscall.SIGSTOP)
			sleepFor(between(d.b, 10*time.Millisecond, 200*time.Millisecond))
			n.resume()
			d.count("process stopped anywhere", 1)
		case "kill anywhere":
			n.kill()
			d.count("process killed anywhere", 1)
			n.restart(d)
		case "terminate":
			n.terminate()
			d.count("process terminated", 1)
			n.restart(d)
		}
	}}
}

// clientLinks breaks the links between clients and servers.
func clientLinks(faults int) lane {
	return lane{"clients", faults, func(d *decision) { breakLink(d, "client link", pick(d.a, d.nodes...).link) }}
}

// storeLink breaks the link between the servers and their store.
func storeLink(faults int) lane {
	return lane{"store", faults, func(d *decision) { breakLink(d, "store link", d.store) }}
}

// breakLink does one thing to a link. It counts if it met something that passed there.
func breakLink(d *decision, where string, p *servers.Proxy) {
	short := between(d.b, 10*time.Millisecond, 150*time.Millisecond)
	kind := pick(d.kind, "request lost", "request lost", "reply lost", "reply lost", "reply lost", "cut after the request", "reset", "reset", "cut",
		"half-open", "held", "black hole", "refused", "delayed", "slow drip", "little bandwidth")
	counted := where + ": " + kind
	before := p.Counts()
	set := func(m servers.Mode) { p.Set(d, m); sleepFor(short); p.Set(d, servers.Forward) }
	throttle := func(rate int) { p.Throttle(rate); sleepFor(4 * short); p.Throttle(0) }
	switch kind {
	case "request lost", "reply lost", "cut after the request", "half-open":
		d.expect(counted, p.On("", map[string]servers.Action{
			"request lost": servers.LoseRequest, "reply lost": servers.LoseReply, "cut after the request": servers.CutAfter, "half-open": servers.Silence,
		}[kind]))
		return
	case "reset":
		p.Reset()
	case "cut":
		p.Cut()
	case "held":
		set(servers.Stall)
	case "black hole":
		set(servers.Swallow)
	case "refused":
		set(servers.Refuse)
	case "delayed":
		p.Delay(short/4, short/4)
		sleepFor(4 * short)
		p.Delay(0, 0)
	case "slow drip":
		throttle(400)
	case "little bandwidth":
		throttle(20_000)
	}
	if after := p.Counts(); after.Ended+after.Lost+after.Held > before.Ended+before.Lost+before.Held {
		d.count(counted, 1)
	}
}

// do sends a command to a server of Redis, and reports whether it was taken. A server
// that restarts just now takes none.
func (d *decision) do(s *servers.RedisServer, args ...string) bool {
	_, err := s.Do(d.Context(), args...)
	return err == nil
}

// disconnect makes a server of Redis forget its scripts and its clients.
func (d *decision) disconnect(s *servers.RedisServer) {
	d.do(s, "SCRIPT", "FLUSH")
	d.do(s, "CLIENT", "KILL", "TYPE", "normal")
	d.count("Redis: connections killed", 1)
}

// redisServer breaks a server of Redis from inside.
func redisServer(faults int, server *servers.RedisServer) lane {
	return lane{"server", faults, func(d *decision) {
		wait := between(d.b, 50*time.Millisecond, 250*time.Millisecond)
		kind := pick(d.kind, "scripts flushed", "scripts flushed", "connections killed", "connections killed", "memory full", "no replica", "read only", "writes paused", "paused", "crashed")
		done := false
		switch kind {
		case "scripts flushed":
			done = d.do(server, "SCRIPT", "FLUSH")
		case "connections killed":
			done = d.do(server, "CLIENT", "KILL", "TYPE", "normal")
		case "memory full":
			done = d.do(server, "CONFIG", "SET", "maxmemory", "1mb")
			sleepFor(wait)
			d.must(server, "CONFIG", "SET", "maxmemory", "0")
		case "no replica":
			done = d.do(server, "CONFIG", "SET", "min-replicas-to-write", "7")
			sleepFor(wait)
			d.must(server, "CONFIG", "SET", "min-replicas-to-write", "0")
		case "read only":
			done = d.do(server, "REPLICAOF", "127.0.0.1", "1")
			sleepFor(wait)
			d.must(server, "REPLICAOF", "NO", "ONE")
		case "writes paused":
			done = d.do(server, "CLIENT", "PAUSE", strconv.FormatInt(wait.Milliseconds(), 10), "WRITE")
			sleepFor(wait)
		case "paused":
			server.Pause(d)
			sleepFor(wait)
			server.Resume(d)
			done = true
		case "crashed":
			server.Restart(d)
			done = true
		}
		if done {
			d.count("Redis: "+kind, 1)
		}
	}}
}

// must sends a command until it is taken.
func (d *decision) must(s *servers.RedisServer, args ...string) {
	deadline := time.Now().Add(patience)
	for !d.do(s, args...) {
		if time.Now().After(deadline) {
			d.Errorf("%v does not take %v", s.Addr(), args)
			return
		}
		sleepFor(20 * time.Millisecond)
	}
}

// postgresServer breaks a server of PostgreSQL from inside.
func postgresServer(faults int, server *servers.PostgresServer) lane {
	return lane{"server", faults, func(d *decision) {
		wait := between(d.b, 20*time.Millisecond, 200*time.Millisecond)
		kind := pick(d.kind, "backend terminated", "backend terminated", "backend terminated", "backend terminated", "backend terminated", "backend terminated",
			"statement cancelled", "statement cancelled", "all backends terminated", "paused", "crashed")
		others := "FROM (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname <> 'postgres' ORDER BY "
		killed := func(sql string) {
			found, err := server.Exec(d.Context(), sql)
			if err == nil {
				d.count("PostgreSQL: "+kind, len(found))
			}
		}
		switch kind {
		case "backend terminated": // one that works, if there is one
			killed("SELECT pg_terminate_backend(pid) " + others + "state <> 'idle' DESC, random() LIMIT 1) a")
		case "all backends terminated":
			killed("SELECT pg_terminate_backend(pid) " + others + "pid) a")
		case "statement cancelled":
			killed("SELECT pg_cancel_backend(pid) " + others + "state = 'active' DESC, random() LIMIT 1) a")
		case "paused":
			server.Pause(d)
			sleepFor(wait)
			server.Resume(d)
			d.count("PostgreSQL: "+kind, 1)
		case "crashed":
			if d.a%3 != 0 {
				return // it takes long
			}
			server.Restart(d)
			d.count("PostgreSQL: "+kind, 1)
		}
	}}
}

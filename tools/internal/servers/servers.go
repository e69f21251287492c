// Package servers starts private servers for tests and tools outside of the lab.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// NotInstalled is the name of a program that this machine does not have.
type NotInstalled string

func (n NotInstalled) Error() string { return string(n) + " is not installed" }

// A Server is a private one, with its files in a temporary folder.
type Server struct {
	// Env names it to the programs that use it: REDIS_ADDR=host:port, DATABASE_URL=URL, or
	// MYSQL_DSN=data source name.
	Env  string
	Stop func()
}

// FreeAddr returns an address of the loopback interface that is free at the moment.
func FreeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Redis starts an empty Redis.
func Redis(ctx context.Context) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, NotInstalled("redis-server")
	}
	addr, err := FreeAddr(ctx)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "--bind", host, "--port", port, "--dir", dir, "--appendonly", "yes")
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return listening(ctx, "REDIS_ADDR="+addr, cmd, dir, addr)
}

// listening returns the server of a process once it listens, with its files in dir.
func listening(ctx context.Context, env string, cmd *exec.Cmd, dir, addr string) (*Server, error) {
	s := &Server{Env: env, Stop: func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ready, "tcp", addr)
		if err == nil {
			return s, conn.Close()
		}
		select {
		case <-ready.Done():
			s.Stop()
			return nil, fmt.Errorf("%s does not listen: %w", cmd.Path, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// MariaDB starts a MariaDB with an empty database named test.
func MariaDB(ctx context.Context) (*Server, error) {
	program, err1 := exec.LookPath("mariadbd")
	if err1 != nil { // Debian has it where only root looks
		program, err1 = exec.LookPath("/usr/sbin/mariadbd")
	}
	install, err2 := exec.LookPath("mariadb-install-db")
	if err1 != nil || err2 != nil {
		return nil, NotInstalled("mariadb-server")
	}
	addr, err := FreeAddr(ctx)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mariadb")
	if err != nil {
		return nil, err
	}
	account := (*syscall.SysProcAttr)(nil)
	if os.Geteuid() == 0 { // mariadbd refuses to run as root
		if account, err = owned(dir, "mysql"); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	data, temporary := "--datadir="+filepath.Join(dir, "data"), "--tmpdir="+dir // a server that starts deletes all temporary tables in it
	cmd := exec.CommandContext(ctx, install, "--no-defaults", data, temporary, "--auth-root-authentication-method=normal", "--skip-name-resolve")
	cmd.SysProcAttr = account
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("mariadb-install-db: %w\n%s", err, out), os.RemoveAll(dir))
	}
	cmd = exec.CommandContext(ctx, program, "--no-defaults", data, temporary, "--bind-address="+host, "--port="+port, "--socket="+filepath.Join(dir, "socket"), "--skip-name-resolve")
	cmd.SysProcAttr = account
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return listening(ctx, "MYSQL_DSN=root@tcp("+addr+")/test", cmd, dir, addr)
}

// Postgres starts a PostgreSQL with an empty database.
func Postgres(ctx context.Context) (*Server, error) {
	program, err := exec.LookPath("pg_ctl")
	if debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl"); err != nil && len(debian) > 0 {
		program = debian[len(debian)-1]
	} else if err != nil {
		return nil, NotInstalled("postgresql")
	}
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		return nil, err
	}
	data, account := filepath.Join(dir, "data"), (*syscall.SysProcAttr)(nil)
	if os.Geteuid() == 0 { // initdb and postgres refuse to run as root
		if account, err = owned(dir, "postgres"); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	control := func(ctx context.Context, args ...string) error {
		log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer log.Close()
		cmd := exec.CommandContext(ctx, program, append([]string{"--silent", "--pgdata", data}, args...)...)
		cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = dir, account, log, log // a pipe would stay open with the server
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("pg_ctl %s: %w\n%s", args[0], err, text)
		}
		return nil
	}
	s := &Server{Env: "DATABASE_URL=postgres:///postgres?user=postgres&host=" + dir, Stop: func() {
		_ = control(context.WithoutCancel(ctx), "stop", "--mode=immediate")
		_ = os.RemoveAll(dir)
	}}
	err = control(ctx, "initdb", "--options=--username=postgres --auth=trust --no-sync")
	if err == nil {
		err = control(ctx, "start", "--wait", "--options=-h '' -k "+dir)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// owned gives a folder to an account, and returns the attributes of a process under that
// account.
func owned(dir, name string) (*syscall.SysProcAttr, error) {
	account, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/conformance/storetest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgSecured is a server that admits the role app by TLS and SCRAM only, to a separate
// database.
type pgSecured struct {
	*servers.PostgresServer

	root string // the certificate, as a file
}

// startSecured starts the server.
func startSecured(t *testing.T) *pgSecured {
	t.Helper()
	s := &pgSecured{PostgresServer: servers.StartPostgres(t)}
	admin := labtest.NewPool(t, s.URL())
	cert, key := pgCertificate(t)
	data := pgValue[string](t, admin, "SHOW data_directory")
	for name, content := range map[string]string{
		"server.crt": cert,
		"server.key": key,
		"pg_hba.conf": "host all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n" +
			"hostssl all app 127.0.0.1/32 scram-sha-256\n",
	} {
		program := "base64 -d > '" + filepath.Join(data, name) + "' && chmod 600 '" + filepath.Join(data, name) + "'"
		pgExec(t, admin, "COPY (SELECT '"+base64.StdEncoding.EncodeToString([]byte(content))+"') TO PROGRAM "+pgQuote(program))
	}
	s.Set(t, "ssl=on")
	pgExec(t, admin, "CREATE ROLE app LOGIN PASSWORD 'secret'")
	pgExec(t, admin, "CREATE DATABASE shop")
	s.root = filepath.Join(t.TempDir(), "root.crt")
	if err := os.WriteFile(s.root, []byte(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// url returns the address of the database shop for a role; app needs its password.
func (s *pgSecured) url(t testing.TB, role *url.Userinfo, tls bool) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	pgWant(t, "url", err, nil)
	u.User, u.Path, u.RawQuery = role, "/shop", "sslmode=disable"
	if tls {
		u.RawQuery = "sslmode=verify-full&sslrootcert=" + url.QueryEscape(s.root)
	}
	return u.String()
}

// pgApp is the role of the service.
func pgApp() *url.Userinfo { return url.UserPassword("app", "secret") }

// setup returns a fixture in the database, made by the administrator, whose role app has
// the rights of Grants only.
func (s *pgSecured) setup(tb testing.TB) *pgFixture {
	tb.Helper()
	f := &pgFixture{labtest.SetupPostgres(tb, s.PostgresServer)}
	f.Pool = labtest.NewPool(tb, s.url(tb, url.User("postgres"), false), labtest.MaxConns(2))
	pgWant(tb, "migrate", reprisepg.Migrate(tb.Context(), f.Pool, f.Config), nil)
	grants, err := reprisepg.Grants(f.Config, "app")
	pgWant(tb, "grants", err, nil)
	f.exec(tb, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA "+pgx.Identifier{f.Config.Schema}.Sanitize()+" FROM PUBLIC")
	f.exec(tb, grants)
	return f
}

// pgExec executes a statement that has to succeed.
func pgExec(tb testing.TB, pool *pgxpool.Pool, statement string) {
	tb.Helper()
	if _, err := pool.Exec(context.WithoutCancel(tb.Context()), statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// pgQuote quotes a literal.
func pgQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// pgCertificate returns a self-signed certificate for the loopback address, and its key.
func pgCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	pgWant(t, "key", err, nil)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	pgWant(t, "certificate", err, nil)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	pgWant(t, "key", err, nil)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// TestPostgresTLSAndSCRAM: both stores pass their suite over TLS with a verified
// certificate and SCRAM, as a role that has the rights of Grants and can neither create
// nor change a table.
func TestPostgresTLSAndSCRAM(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	app := s.url(t, pgApp(), true)
	f := s.setup(t)
	pool := labtest.NewPool(t, app)
	if !pgValue[bool](t, pool, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") {
		t.Fatal("the connection has no TLS")
	}
	if _, err := pool.Exec(t.Context(), "CREATE TABLE "+f.name("t")+" (n integer)"); err == nil {
		t.Fatal("the role may create tables")
	}
	if codes := pgFindings(t, pgOn(pool, f.Config).Leased(t)); len(codes) != 0 {
		t.Errorf("check finds %v", codes)
	}
	for name, bad := range map[string]string{
		"without TLS":           s.url(t, pgApp(), false),
		"with a wrong password": s.url(t, url.UserPassword("app", "wrong"), true),
	} {
		_, err := pgOn(labtest.NewPool(t, bad), f.Config).Leased(t).Claim(t.Context(), pgClaim())
		pgWant(t, "claim "+name, err, store.ErrMisconfigured)
	}
	t.Run("leased", func(t *testing.T) {
		labtest.Breadth(t, "runs of a suite over a further deployment")
		storetest.Run(t, func(tb testing.TB) storetest.Fixture {
			f := s.setup(tb)
			fixture := pgSuite(tb, f)
			fixture.Effects = nil // the role may not write their table
			fixture.Open = func(tb testing.TB) store.Store {
				return pgOn(labtest.NewPool(tb, app, labtest.MaxConns(3)), f.Config).Leased(tb)
			}
			return fixture
		})
	})
}

// TestPostgresConfigurationHeals: a password that is rotated, a grant that is revoked, a
// table or a database that is away while a handler runs: the completion is repeated in
// the background, and once the server is as it was the response is kept and replayed.
func TestPostgresConfigurationHeals(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	f := s.setup(t)
	admin := labtest.NewPool(t, s.URL(), labtest.MaxConns(2))
	grants, err := reprisepg.Grants(f.Config, "app")
	pgWant(t, "grants", err, nil)
	disconnect := func() {
		f.Pool.Reset()
		pgExec(t, admin, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'shop'")
		pgEventually(t, "nobody is connected", func() bool {
			return pgValue[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'") == 0
		})
	}
	for _, fault := range []struct {
		name       string
		breaks     func()
		heals      func()
		disconnect bool
	}{
		{
			"28P01: the password was rotated",
			func() { pgExec(t, admin, "ALTER ROLE app PASSWORD 'rotated'"); disconnect() },
			func() { pgExec(t, admin, "ALTER ROLE app PASSWORD 'secret'") }, true,
		},
		{
			"42501: a grant was revoked",
			func() { f.exec(t, "REVOKE ALL ON "+f.records()+" FROM app") },
			func() { f.exec(t, grants) }, false,
		},
		{
			"42P01: the table is being migrated",
			func() { f.exec(t, "ALTER TABLE "+f.records()+" RENAME TO away") },
			func() { f.exec(t, "ALTER TABLE "+f.name("away")+" RENAME TO reprise_records") }, false,
		},
		{
			"3D000: the database is away",
			func() { disconnect(); pgExec(t, admin, "ALTER DATABASE shop RENAME TO away") },
			func() { pgExec(t, admin, "ALTER DATABASE away RENAME TO shop") }, true,
		},
	} {
		t.Run(fault.name, func(t *testing.T) {
			var log pgLog
			c := f.Config
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			service := pgOn(labtest.NewPool(t, s.url(t, pgApp(), true), labtest.MaxConns(2)), c)
			engine, err := reprise.New(service.Leased(t), reprise.Config{})
			pgWant(t, "engine", err, nil)
			defer func() {
				ctx, cancel := pgCall(t)
				defer cancel()
				pgWant(t, "close", engine.Close(ctx), nil)
			}()
			op := reprise.Operation{Scope: "tenant", Key: fault.name}
			begun, err := engine.Begin(t.Context(), op)
			pgWant(t, "begin", err, nil)

			fault.breaks()
			if fault.disconnect {
				service.Pool.Reset()
			}
			result, err := begun.Attempt.Complete(reprise.Completion{Payload: []byte("answer")})
			if err != nil || result.End != reprise.EndUnrecorded {
				t.Errorf("complete answered %v, %v, want Unrecorded", result, err)
			}
			_, err = engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "another"})
			pgWant(t, "begin while it is broken", err, store.ErrMisconfigured)
			fault.heals()
			pgEventually(t, "the completion is made up for", func() bool {
				again, err := engine.Begin(t.Context(), op)
				return err == nil && again.Outcome == reprise.Replayed && string(again.Payload) == "answer"
			})
		})
	}
}

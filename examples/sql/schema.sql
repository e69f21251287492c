-- Several processes may start at once, and CREATE … IF NOT EXISTS is not safe against that by itself.
SELECT pg_advisory_xact_lock(hashtext('reprise_example'));

CREATE SCHEMA IF NOT EXISTS reprise_example;

CREATE TABLE IF NOT EXISTS reprise_example.accounts (
  id text PRIMARY KEY,
  balance bigint NOT NULL CHECK (balance >= 0) -- in cents
);

CREATE TABLE IF NOT EXISTS reprise_example.transfers (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  source text NOT NULL REFERENCES reprise_example.accounts,
  target text NOT NULL REFERENCES reprise_example.accounts,
  amount bigint NOT NULL CHECK (amount > 0),
  note text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);

INSERT INTO reprise_example.accounts VALUES ('alice', 100000), ('bob', 100000) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS accounts (
    id      text PRIMARY KEY,
    balance bigint NOT NULL CHECK (balance >= 0)
);

-- One row for each payment. No constraint keeps a message from being booked twice: only
-- Reprise does.
CREATE TABLE IF NOT EXISTS entries (
    message text NOT NULL,
    account text NOT NULL REFERENCES accounts,
    amount  bigint NOT NULL
);

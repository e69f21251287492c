-- name: Lock :exec
SELECT id FROM reprise_example.accounts WHERE id = sqlc.arg(source) OR id = sqlc.arg(target) ORDER BY id FOR NO KEY UPDATE;

-- name: Take :execrows
UPDATE reprise_example.accounts SET balance = balance - sqlc.arg(amount)::bigint WHERE id = sqlc.arg(source) AND balance >= sqlc.arg(amount)::bigint;

-- name: Give :execrows
UPDATE reprise_example.accounts SET balance = balance + sqlc.arg(amount)::bigint WHERE id = sqlc.arg(target);

-- name: Record :one
INSERT INTO reprise_example.transfers (source, target, amount, note) VALUES ($1, $2, $3, $4) RETURNING id;

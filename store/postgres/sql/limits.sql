-- Limits of the transaction: $1 how long it may last. It answers the instant at which the transaction began, and the process of the session.
-- The session has that instant as reprise.began from then on, unless the transaction is rolled back.
--
-- A timeout that the session has already stays where it is stricter.
SELECT {clock}, pg_backend_pid(), set_config('reprise.began', {clock}::text, false),
	CASE WHEN current_setting('statement_timeout') = '0' OR current_setting('statement_timeout')::interval > $1::text::interval
		THEN set_config('statement_timeout', $1::text, true) END,
	CASE WHEN current_setting('idle_in_transaction_session_timeout') = '0' OR current_setting('idle_in_transaction_session_timeout')::interval > $1::text::interval
		THEN set_config('idle_in_transaction_session_timeout', $1::text, true) END

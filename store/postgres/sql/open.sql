-- Open: $1 the key of the attempt's lock, $2 the mark of its transaction, $3 the limit of the transaction, $4 how often the server looks
-- after the client while a statement runs, or '' where it cannot. NULL says that the lock is taken, and then nothing of it counts.
--
-- The mark is how the completion finds out that the handler ended the transaction. A timeout that the session has already stays where
-- it is stricter; NULL is one that the server does not have.
SELECT
	CASE WHEN pg_try_advisory_xact_lock($1::bigint) THEN set_config('reprise.attempt', $2::text, true) END,
	CASE WHEN current_setting('statement_timeout') = '0' OR current_setting('statement_timeout')::interval > $3::text::interval
		THEN set_config('statement_timeout', $3::text, true) END,
	CASE WHEN current_setting('idle_in_transaction_session_timeout') = '0' OR current_setting('idle_in_transaction_session_timeout')::interval > $3::text::interval
		THEN set_config('idle_in_transaction_session_timeout', $3::text, true) END,
	CASE WHEN current_setting('transaction_timeout', true) = '0' OR current_setting('transaction_timeout', true)::interval > $3::text::interval
		THEN set_config('transaction_timeout', $3::text, true) END,
	CASE WHEN $4::text <> '' AND (current_setting('client_connection_check_interval') = '0'
			OR current_setting('client_connection_check_interval')::interval > $4::text::interval)
		THEN set_config('client_connection_check_interval', $4::text, true) END

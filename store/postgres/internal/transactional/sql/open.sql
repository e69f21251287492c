-- Open: $1 the key of the attempt's lock, $2 the limit of its transaction, $3 how often the server looks after the client while a
-- statement runs, or '' where it cannot. It answers whether the lock was free, the process of the session, and nothing of interest.
--
-- A timeout that the session has already stays where it is stricter.
SELECT pg_try_advisory_xact_lock($1::bigint), pg_backend_pid(),
	CASE WHEN current_setting('statement_timeout') = '0' OR current_setting('statement_timeout')::interval > $2::text::interval
		THEN set_config('statement_timeout', $2::text, true) END,
	CASE WHEN current_setting('idle_in_transaction_session_timeout') = '0' OR current_setting('idle_in_transaction_session_timeout')::interval > $2::text::interval
		THEN set_config('idle_in_transaction_session_timeout', $2::text, true) END,
	CASE WHEN $3::text <> '' AND (current_setting('client_connection_check_interval') = '0'
			OR current_setting('client_connection_check_interval')::interval > $3::text::interval)
		THEN set_config('client_connection_check_interval', $3::text, true) END

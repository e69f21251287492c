-- Limit: $1 the limit of the transaction, on servers that have a setting for it, 17 and newer. A stricter one of the session stays.
SELECT CASE WHEN current_setting('transaction_timeout') = '0' OR current_setting('transaction_timeout')::interval > $1::text::interval
	THEN set_config('transaction_timeout', $1::text, true) END

-- Others: $1 the table of the migrations. It answers which grantees have rights on the records, apart from the owner, this role, the roles
-- that it is a member of, and those that have exactly the rights of Grants: they run a store.
WITH this AS (
	SELECT {records_literal}::regclass AS records, quote_ident(current_user)::regrole AS role
), granted AS (
	SELECT c.oid AS on_table, c.relowner, a.grantee, array_agg(DISTINCT a.privilege_type ORDER BY a.privilege_type) AS rights
	FROM this, pg_class AS c, aclexplode(c.relacl) AS a
	WHERE c.oid IN (this.records, $1::text::regclass)
	GROUP BY c.oid, c.relowner, a.grantee
)
SELECT coalesce(string_agg(CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.grantee)) END, ', ' ORDER BY r.grantee), '')
FROM this JOIN granted AS r ON r.on_table = this.records LEFT JOIN granted AS m ON m.grantee = r.grantee AND m.on_table = $1::text::regclass
WHERE r.grantee NOT IN (r.relowner, this.role)
	AND NOT EXISTS (SELECT FROM pg_auth_members AS a WHERE a.roleid = r.grantee AND a.member = this.role)
	AND (r.grantee = 0 OR r.rights <> ARRAY['DELETE', 'INSERT', 'SELECT', 'UPDATE'] OR m.rights IS DISTINCT FROM ARRAY['SELECT'])

-- Release forgets a claim.
--
-- ARGV[1]: owner
if not seen or not began or owner ~= ARGV[1] or reason then return 'N' end

local watched = kind == CLAIMED_LATER

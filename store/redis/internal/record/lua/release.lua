-- Release forgets a claim, also one that is not seen any more: while its key is there, a
-- claim that a command makes still finds it.
--
-- ARGV[1]: owner
if not began or owner ~= ARGV[1] or reason then return 'N' end

local watched = kind == CLAIMED_LATER

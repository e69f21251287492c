-- Nothing but what is for operators touches a record that it cannot read. The answer has
-- the first byte of the record, if there is one.
if unreadable then return '!' .. string.sub(raw or '', 1, 1) end
